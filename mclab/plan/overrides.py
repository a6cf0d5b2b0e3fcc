"""Parse what the command line changes in a grid: `train.steps=50`, `--seeds`, `--smoke`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mclab.config.parse import typed
from mclab.config.strict import ConfigError, cut
from mclab.plan.dotted import Flat, Setting, parents_first, refuse_contradictions, setting, value_at, within
from mclab.plan.loader import parse_value
from mclab.plan.seeds import seeds_from

#: The keys that make a run small, and the largest value that --smoke allows for each.
SMOKE = {"train.steps": 2, "train.batch": 8, "eval.every": 1, "eval.valid": 8, "eval.test": 8}
SMOKE_SEEDS = 2
#: The most letters of an override that a message shows.
_WIDTH = 100
SMOKE_NOTE = "smoke: two steps on small sets, to see that everything runs; the numbers mean nothing"


@dataclass(frozen=True)
class CommandLine:
    """What the command line adds to a grid: overrides, `seed=`, `--seeds`, `--smoke`.

    `fewer` says that there may be fewer seeds than the author of the grid expected, for a reason other than these.
    """

    settings: tuple[Setting, ...] = ()
    seed: int | None = None
    seeds: str | None = None
    smoke: bool = False
    fewer: bool = False

    @property
    def about_seeds(self) -> bool:
        """True if there may be fewer seeds than the author of the grid expected."""
        return self.smoke or self.fewer or self.seeds is not None


def parse_overrides(texts: Iterable[str]) -> tuple[tuple[Setting, ...], int | None]:
    """Return the settings that `key=value` texts give, and the value of `seed=` among them.

    Raises `ConfigError` for a text without `=`, an unknown key, a key given twice, and a key that contradicts a mixer's
    name.
    """
    found: dict[str, Setting] = {}
    seed: int | None = None
    seen: set[str] = set()
    for text in texts:
        path, value = _split(text)
        where = cut(text, _WIDTH)
        if path in seen:
            raise ConfigError(f"{where}: {path} is given twice; keep one")
        seen.add(path)
        if path == "seed":
            seed = _seed(where, value)
        else:
            found[path] = setting(path, value, where)
    refuse_contradictions(list(found.values()))
    return parents_first(found.values()), seed


def _split(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"{cut(text, _WIDTH)}: this is not an override; write key=value, e.g. train.steps=50")
    if path.strip() == "seeds":
        raise ConfigError(f"{cut(text, _WIDTH)}: seeds is not a key of a run; use --seeds {cut(value)}")
    try:
        return path.strip(), parse_value(value, path.strip())
    except ConfigError as error:
        raise ConfigError(f"{cut(text, _WIDTH)}: {path.strip()}: {str(error).partition(': ')[2]}") from None


def _seed(text: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{text}: seed: must be a whole number; use --seeds for several seeds")
    return int(typed("seed", value, text))


def seeds_from_text(text: str) -> tuple[int, ...]:
    """Return the seeds of the command line's `--seeds`: `0..4`, `0,2,5` or `[0, 2, 5]`. Raises `ConfigError`."""

    def error(message: str) -> ConfigError:
        return ConfigError(f"--{message}")

    bare = text.strip()
    if bare == "0":  # this can only mean seed 0, since nobody asks for no seeds
        return (0,)
    try:
        value = parse_value(f"[{bare}]" if "," in bare and not bare.startswith("[") else bare)
    except ConfigError as wrong:
        raise error(f"seeds: {wrong}") from None
    return seeds_from(value, error)


def refuse_varied(given: Sequence[Setting], varied: Sequence[Setting], chosen: Sequence[str]) -> None:
    """Raise `ConfigError` if an override sets a key that the grid varies or chooses, or a mapping that contains one."""
    for item in given:
        for path in chosen:
            if _meet(item.touches, (path,)):
                raise ConfigError(
                    f"{item.where}: {item.path}: this key cannot be set here, because every cell chooses {path} "
                    "(select.over); edit the file instead"
                )
        for other in varied:
            if _meet(item.touches, other.touches):
                raise ConfigError(
                    f"{item.where}: {item.path}: this key cannot be set here, because {other.where} varies "
                    f"{other.path}; edit the file instead"
                )


def _meet(these: Sequence[str], those: Sequence[str]) -> bool:
    return any(within(this, that) or within(that, this) for this in these for that in those)


def smoke_limits(given: Sequence[Setting]) -> dict[str, int]:
    """Return the largest value that --smoke allows for each key; keys that an override sets have no limit."""
    kept = {path for item in given for path in item.flat}
    return {path: most for path, most in SMOKE.items() if path not in kept}


def smaller(flat: Flat, limits: Mapping[str, int]) -> Flat:
    """Return `flat` with every key at most at its limit; defaults above their limits are lowered too."""
    found = ((path, value_at(flat, path), most) for path, most in limits.items())
    return flat | {path: min(value, most) if isinstance(value, int) else value for path, value, most in found}

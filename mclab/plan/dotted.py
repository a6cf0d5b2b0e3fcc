"""A run as dotted keys before it is a `RunConfig`: read from a file, changed by settings, and nested again.

Inside the plan a run is a flat mapping of dotted paths to values. A mapping that is given for a mixer or a task
replaces it as a whole; a mapping for any other section (`train: {lr: 1e-3}`) is only another way to write its keys.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.keys import by_path, default_name, named_sections, plain_sections, sections, shown
from mclab.config.model.mixers import with_name
from mclab.config.parse import Where, check_path, check_values, parse_run, quoted, typed
from mclab.config.strict import ConfigError
from mclab.plan.source import Source

Flat = dict[str, Any]

_MIXER = "model.mixer"
_INSIDE = f"{_MIXER}."

#: The value of a key that the run's mixer or task does not have.
ABSENT = object()


@dataclass(frozen=True)
class Setting:
    """One key with its value. It removes the mappings `clears` and sets the dotted keys `flat`.

    `named` holds the keys that are set because a mixer's name stands for them, each with that name. `where` is the
    place for messages.
    """

    path: str
    value: Any
    clears: tuple[str, ...]
    flat: Flat
    where: str
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def touches(self) -> tuple[str, ...]:
        """The mappings that this setting replaces and the keys that it sets."""
        return (*self.clears, *self.flat)

    def covers(self, path: str) -> bool:
        """Return whether this setting decides the value of `path`."""
        return path in self.flat or any(within(path, gone) for gone in (self.path, *self.clears))


def within(path: str, other: str) -> bool:
    """Return whether `path` is `other` or a key below it."""
    return path == other or path.startswith(f"{other}.")


def setting(path: str, value: Any, where: str, top: str = "") -> Setting:
    """Return the setting of a known key.

    Raises `ConfigError` for an unknown key, and for `seed`, which `seeds` sets.
    """
    prefix = f"{where}: {top}" if top else where
    if path == "seed":
        raise ConfigError(f"{prefix}: seed: the seed is not an axis; list the seeds under seeds, e.g. seeds: 0..4")
    check_path(path, prefix)
    if path in plain_sections() and isinstance(value, Mapping):
        inner = [setting(full, part, where, top) for full, part in pairs(value, plain_sections(), path, prefix)]
        refuse_contradictions(inner)
        clears = tuple(gone for part in inner for gone in part.clears)
        named = {key: name for part in inner for key, name in part.named.items()}
        return Setting(path, value, clears, overlaid({}, parents_first(inner)), where, named)
    flat = {path: value}
    if path in named_sections() and isinstance(value, Mapping):
        flat = dict(pairs(value, sections(), path, prefix))
    flat = with_names_expanded(flat, lambda _: prefix)
    return Setting(path, value, () if path in flat else (path,), flat, where, _keys_of_name(path, value))


def refuse_contradictions(items: Sequence[Setting]) -> None:
    """Raise `ConfigError` if a key in one setting contradicts a mixer's name in another one.

    The settings are written together, so that none of them can be taken as the later one that wins.
    """
    for item in items:
        for path, name in item.named.items():
            for other in items:
                if other is not item and path in other.flat and differ(path, item.flat[path], other.flat[path]):
                    keys = {each.rpartition(".")[2]: item.flat[each] for each in item.named if item.named[each] == name}
                    raise ConfigError(f"{other.where}: {_contradiction(path, name, keys, other.flat[path])}")


def settings(data: Any, source: Source, at: str) -> tuple[Setting, ...]:
    """Return the settings of a row such as `{model.dim: 16, train: {lr: 1e-3}}`.

    `at` is the row's place in the grid.
    """
    if data is None:
        return ()
    if not isinstance(data, Mapping):
        raise source.error(at, f"{at}: must be a mapping of keys to values, got {quoted(data)}")
    found = pairs(data, plain_sections(), "", f"{source.at(at)}: {at}")
    return parents_first(setting(path, value, source.at(f"{at}.{path}"), at) for path, value in found)


def parents_first(items: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return the settings in their order, but whole mappings before the keys within them."""
    return tuple(sorted(items, key=lambda item: item.path.count(".") if _is_whole(item) else 99))


def _is_whole(item: Setting) -> bool:
    return isinstance(item.value, Mapping) or item.path in sections()


def pairs(data: Mapping[Any, Any], into: Container[str], path: str, where: str) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, value) for everything in `data`. Mappings whose path is in `into` are opened.

    Raises `ConfigError` if a key is given twice, once nested and once dotted.
    """
    seen: set[str] = set()
    for full, value in _walk(data, into, path):
        if full in seen:
            raise ConfigError(f"{where}: {full}: this key is given twice, nested and dotted; keep one")
        seen.add(full)
        yield full, value


def _walk(data: Mapping[Any, Any], into: Container[str], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        full = f"{path}.{key}" if path else str(key)
        if full in into and isinstance(value, Mapping):
            yield from _walk(value, into, full)
        elif not (value is None and full in plain_sections()):
            yield full, value


def overlaid(base: Flat, over: Iterable[Setting]) -> Flat:
    """Return `base` after these settings are applied in their order."""
    flat = dict(base)
    for item in over:
        for gone in item.clears:
            for path in [path for path in flat if within(path, gone)]:
                del flat[path]
        flat.update(item.flat)
    return flat


def written_at(path: str, over: Iterable[Setting], source: Source) -> str:
    """Return where the value of `path` was written: in the last setting that covers it, else in the base."""
    covering = [item.where for item in over if item.covers(path)]
    return covering[-1] if covering else source.at(f"base.{path}")


def nested(flat: Flat, where: Where = "") -> dict[str, Any]:
    """Return a flat mapping in the nested form that the config models read.

    Raises `ConfigError` for a key within a value that is no mapping. If no run accepts that value, the error is about
    the value.
    """
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        place = tree
        for depth, parent in enumerate(parents, 1):
            if (above := ".".join(parents[:depth])) in flat:
                parse_run(nested({above: flat[above]}), where)
                at = where if isinstance(where, str) else where(path)
                text = (
                    f"{path}: {above} has no such key, because its value is {shown(flat[above])}; write {above} as a "
                    "mapping"
                )
                raise ConfigError(f"{at}: {text}" if at else text)
            place = place.setdefault(parent, {})
        place[last] = value
    return tree


def base_of(data: Any, source: Source) -> tuple[Flat, int | None]:
    """Return the keys of a file's `base`, and its seed. Each key is checked; rules between keys are checked later.

    Raises `ConfigError` if `base` is no mapping, for a key that no run has, and for a value that the key does not
    accept.
    """
    if data is None:
        return {}, None
    if not isinstance(data, Mapping):
        raise source.error("base", f"base: must be a mapping of keys to values, got {quoted(data)}")

    def where(path: str) -> str:
        return source.at(f"base.{path}")

    flat = with_names_expanded(dict(pairs(data, sections(), "", f"{source.at('base')}: base")), where)
    for path in flat:
        if path.rpartition(".")[0] in by_path():
            check_path(path, where(path))
    check_values(nested(flat, where), where)
    return flat, flat.pop("seed", None)


def question_of(value: Any, source: Source) -> str | None:
    """Return a file's `question`. Raises `ConfigError` if it is not a text."""
    if value is not None and not isinstance(value, str):
        raise source.error("question", f"question: must be text, got {quoted(value)}; put it in quotes")
    return value.strip() if value else None


def check_top(
    data: Mapping[str, Any], keys: Sequence[str], owner: str, of_a_run: str, hints: Mapping[str, str], source: Source
) -> None:
    """Raise `ConfigError` for a key at the top of a file that is not in `keys`, with a hint.

    `owner` names the kind of file. `hints` holds hints by key; `of_a_run` is the hint for a key of the run itself.
    """
    for key in data:
        if key in keys:
            continue
        hint = did_you_mean(str(key), keys) or f"the keys of {owner} are {', '.join(keys)}"
        if str(key).partition(".")[0] in sections():
            hint = of_a_run
        raise source.error(str(key), f"{key}: unknown key; {hints.get(str(key), hint)}")


def value_at(flat: Flat, path: str) -> Any:
    """Return the value of a run's key: that in `flat`, else its default; `ABSENT` if the run has no such key."""
    if path in flat:
        return normalised(path, flat[path])
    section = path.rpartition(".")[0]
    of = flat.get(f"{section}.name", default_name(section)) if section in named_sections() else None
    keys = by_path()[path]
    key = keys.get(of, keys.get(None)) if isinstance(of, str | None) else None
    return ABSENT if key is None else key.default


def with_names_expanded(flat: Mapping[str, Any], where: Callable[[str], str]) -> dict[str, Any]:
    """Return `flat` with the keys that a mixer's name or preset stands for, instead of the name.

    A wrong name stays and is refused later by the schema. Raises `ConfigError`, at `where` of the key, for a key that
    contradicts the name.
    """
    name = flat.get(_MIXER)
    given = {path.removeprefix(_INSIDE): value for path, value in flat.items() if path.startswith(_INSIDE)}
    if not isinstance(name, str) and (_MIXER in flat or "name" not in given):
        return dict(flat)
    try:
        given = with_name(given) if "name" in given else given
        keys = with_name(name) if isinstance(name, str) else {}
    except ValueError:
        return dict(flat)
    for key in keys:
        if key in given and differ(path := f"{_INSIDE}{key}", keys[key], given[key]):
            raise ConfigError(f"{where(path)}: {_contradiction(path, name or '', keys, given[key])}")
    rest = {path: value for path, value in flat.items() if path != _MIXER and not path.startswith(_INSIDE)}
    return rest | {f"{_INSIDE}{key}": value for key, value in {**keys, **given}.items()}


def _keys_of_name(path: str, value: Any) -> dict[str, str]:
    """Return {key: name} for the keys that the mixer's name in `value`, the value of `path`, stands for."""
    if path == _MIXER and isinstance(value, Mapping):
        path, value = f"{_MIXER}.name", value.get("name")
    if path not in (_MIXER, f"{_MIXER}.name") or not isinstance(value, str):
        return {}
    return dict.fromkeys(with_names_expanded({path: value}, lambda _: ""), value)


def _contradiction(path: str, name: str, keys: Mapping[str, Any], value: Any) -> str:
    """Return the message for a key whose value differs from the one that the mixer's name gives it.

    `keys` are all the keys that the name stands for.
    """
    key = path.removeprefix(_INSIDE)
    whole = {"name": value} if key == "name" else {**keys, key: value}
    return (
        f"{path}: mixer {name} sets this key to {shown(keys[key])}; for another value write a mapping, {_MIXER}: "
        f"{shown(whole)}"
    )


def differ(path: str, one: Any, other: Any) -> bool:
    """Return whether two values of a key make different runs."""
    return repr(normalised(path, one)) != repr(normalised(path, other))


def normalised(path: str, value: Any) -> Any:
    """Return `value` in the form in which a run holds it; unchanged if no run accepts it."""
    try:
        return typed(path, value) if path in by_path() else value
    except ConfigError:
        return value

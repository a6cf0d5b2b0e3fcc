"""Keys and values before they are a run: nested or dotted, laid over each other, nested again.

Inside the plan a run is a flat mapping, dotted path to value. A mapping given for a mixer or a task replaces it as a
whole; a mapping given for a mere section (`train: {lr: 1e-3}`) is only another way to write its keys.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mclab.config.keys import by_path, choices, default_name, rooms, sections
from mclab.config.model.mixers import opened
from mclab.config.parse import check_path, quoted, typed
from mclab.config.strict import ConfigError
from mclab.plan.source import Source

Flat = dict[str, Any]

#: Stands for the value of a key that the cell's mixer or task does not have.
ABSENT = object()


@dataclass(frozen=True)
class Setting:
    """One key given one value. `clears` are mappings that it replaces; `flat` is what stands there then."""

    path: str
    value: Any
    clears: tuple[str, ...]
    flat: Flat
    where: str

    @property
    def touches(self) -> tuple[str, ...]:
        """The mappings that it replaces and the keys that it sets."""
        return (*self.clears, *self.flat)

    def covers(self, path: str) -> bool:
        """True where the value of `path` is this setting's doing."""
        return path in self.flat or any(within(path, gone) for gone in (self.path, *self.clears))


def within(path: str, other: str) -> bool:
    """True where `path` is `other` or lies in it."""
    return path == other or path.startswith(f"{other}.")


def setting(path: str, value: Any, where: str, top: str = "") -> Setting:
    """A setting of a known key. Raises `ConfigError` for an unknown key, and for `seed`, which `seeds` gives."""
    prefix = f"{where}: {top}" if top else where
    if path == "seed":
        raise ConfigError(f"{prefix}: seed: is no axis; list the seeds under seeds, e.g. seeds: 0..4")
    check_path(path, prefix)
    if path in sections() and isinstance(value, Mapping):
        inner = [setting(full, part, where, top) for full, part in pairs(value, sections(), path, prefix)]
        clears = tuple(gone for part in inner for gone in part.clears)
        return Setting(path, value, clears, {key: v for part in inner for key, v in part.flat.items()}, where)
    flat = {path: value}
    if path in choices() and isinstance(value, Mapping):
        flat = dict(pairs(value, rooms(), path, prefix))
    flat = written_out(flat)
    return Setting(path, value, () if path in flat else (path,), flat, where)


def written_out(flat: Flat) -> Flat:
    """`flat` with a mixer's word or preset as the keys that it stands for; a wrong one stays, to be found out later."""
    room = "model.mixer"
    word, inside = flat.get(room), f"{room}."
    given = {path.removeprefix(inside): value for path, value in flat.items() if path.startswith(inside)}
    try:
        if isinstance(word, str):
            keys = {**opened(word), **given}
        elif "name" in given:
            keys = opened(given)
        else:
            return flat
    except ValueError:
        return flat
    rest = {path: value for path, value in flat.items() if not within(path, room)}
    return rest | {f"{inside}{key}": value for key, value in keys.items()}


def settings(data: Any, source: Source, at: str) -> tuple[Setting, ...]:
    """The settings of a row: `{model.dim: 16, train: {lr: 1e-3}}`. `at` is where it stands in the grid."""
    if data is None:
        return ()
    if not isinstance(data, Mapping):
        raise source.error(at, f"{at}: needs a mapping of keys to values, got {quoted(data)}")
    found = pairs(data, sections(), "", f"{source.at(at)}: {at}")
    return parents_first(setting(path, value, source.at(f"{at}.{path}"), at) for path, value in found)


def parents_first(items: Iterable[Setting]) -> tuple[Setting, ...]:
    """Whole mappings before the keys in them, else as given."""
    return tuple(sorted(items, key=lambda item: item.path.count(".") if _is_whole(item) else 99))


def _is_whole(item: Setting) -> bool:
    return isinstance(item.value, Mapping) or item.path in rooms()


def pairs(data: Mapping[Any, Any], into: Container[str], path: str, where: str) -> Iterator[tuple[str, Any]]:
    """Dotted path and value of everything in `data`, opening the mappings whose path is in `into`.

    Raises `ConfigError` where a key comes twice, once nested and once dotted.
    """
    seen: set[str] = set()
    for full, value in _walk(data, into, path):
        if full in seen:
            raise ConfigError(f"{where}: {full}: given twice, nested and dotted; keep one")
        seen.add(full)
        yield full, value


def _walk(data: Mapping[Any, Any], into: Container[str], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        full = f"{path}.{key}" if path else str(key)
        if full in into and isinstance(value, Mapping):
            yield from _walk(value, into, full)
        elif not (value is None and full in sections()):
            yield full, value


def laid(base: Flat, over: Iterable[Setting]) -> Flat:
    """`base` with settings laid over it, the later ones on top."""
    flat = dict(base)
    for item in over:
        for gone in item.clears:
            for path in [path for path in flat if within(path, gone)]:
                del flat[path]
        flat.update(item.flat)
    return flat


def written_at(path: str, over: Iterable[Setting], source: Source) -> str:
    """Where the value of `path` was written: in the last setting that covers it, else in the base."""
    covering = [item.where for item in over if item.covers(path)]
    return covering[-1] if covering else source.at(f"base.{path}")


def nested(flat: Flat) -> dict[str, Any]:
    """A flat mapping as the nested one that the config models read."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                break
        else:
            place[last] = value
    return tree


def value_at(flat: Flat, path: str) -> Any:
    """What a run holds under a key, its default where `flat` is silent, `ABSENT` where it has no such key."""
    if path in flat:
        return settled(path, flat[path])
    room = path.rpartition(".")[0]
    of = flat.get(f"{room}.name", default_name(room)) if room in choices() else None
    keys = by_path()[path]
    key = keys.get(of, keys.get(None)) if isinstance(of, str | None) else None
    return ABSENT if key is None else key.default


def settled(path: str, value: Any) -> Any:
    """`value` as a run holds it; as it is where no run would take it (the schema complains later)."""
    try:
        return typed(path, value) if path in by_path() else value
    except ConfigError:
        return value

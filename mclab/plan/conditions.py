"""Read `when` and `exclude`: the conditions under which a cell has a key, or is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mclab.config.keys import sections, shown
from mclab.config.parse import check_path, quoted, typed
from mclab.config.strict import ConfigError
from mclab.plan.dotted import ABSENT, Flat, Setting, overlaid, pairs, value_at
from mclab.plan.source import Source

#: The most conditions under exclude, since every one is checked for every cell.
MOST_RULES = 1000


@dataclass(frozen=True)
class Condition:
    """A condition on a run: every key in `allowed` must have one of the allowed values."""

    allowed: Mapping[str, tuple[Any, ...]]
    text: str

    def holds(self, flat: Flat) -> bool:
        """Return whether the run `flat` has every key with an allowed value."""
        return all(
            (value := value_at(flat, path)) is not ABSENT and value in values for path, values in self.allowed.items()
        )


def condition(data: Any, source: Source, at: str) -> Condition:
    """Read a condition such as `{model.mixer.aggregate: ssc}`; a list of values means any of them.

    For a key that holds lists, such as `pairs`, a list is one value. Raises `ConfigError` for an unknown key or a value
    that the key never has.
    """
    if not isinstance(data, Mapping) or not data:
        raise source.error(at, f"{at}: must be a mapping of keys to values, got {quoted(data)}")
    allowed: dict[str, tuple[Any, ...]] = {}
    for path, value in pairs(data, sections(), "", f"{source.at(at)}: {at}"):
        where = f"{source.at(f'{at}.{path}')}: {at}"
        _check_leaf(path, where)
        allowed[path] = _allowed(path, value, where)
    return Condition(allowed, shown(data))


def _check_leaf(path: str, where: str) -> None:
    check_path(path, where)
    if path in sections():
        raise ConfigError(
            f"{where}: {path}: this is not a key but a mapping of keys; name one key in it, e.g. {path}.name"
        )


def _allowed(path: str, value: Any, where: str) -> tuple[Any, ...]:
    """Return the allowed values: a list is one value for a key that holds lists, else several values."""
    try:
        return (typed(path, value),)
    except ConfigError:
        if isinstance(value, list) and value:
            return tuple(typed(path, part, where) for part in value)
        typed(path, value, where)
        raise


@dataclass(frozen=True)
class When:
    """For some keys, the condition under which a run has the key."""

    rules: Mapping[str, Condition]

    def kept(self, base: Flat, items: tuple[Setting, ...]) -> tuple[Setting, ...]:
        """Return the settings whose conditions hold.

        Conditions are checked again after each removal, since the condition of another setting may then fail.
        """
        while self.rules:
            flat = overlaid(base, items)
            gone = [item for item in items if item.path in self.rules and not self.rules[item.path].holds(flat)]
            if not gone:
                break
            items = tuple(item for item in items if item not in gone)
        return items

    def idle(self, varied: Sequence[str]) -> list[str]:
        """Return a warning for every key with a condition that is not varied."""
        paths = [path for path in self.rules if path not in varied]
        return [f"when: {path} is not varied here, so its condition changes nothing" for path in paths]


def when(data: Any, source: Source) -> When:
    """Read the grid's `when`. Raises `ConfigError` for an unknown key, a value that a key never has, or a circle."""
    if data is None:
        return When({})
    if not isinstance(data, Mapping):
        raise source.error("when", f"when: must be a mapping of keys to conditions, got {quoted(data)}")
    rules: dict[str, Condition] = {}
    for path, rule in pairs(data, sections(), "", f"{source.at('when')}: when"):
        _check_leaf(path, f"{source.at(f'when.{path}')}: when")
        rules[path] = condition(rule, source, f"when.{path}")
    for path in rules:
        if path in (ring := _ring(path, rules)):
            raise source.error(f"when.{path}", f"when: {path}: {_circular(path, ring)}")
    return When(rules)


def _ring(path: str, rules: Mapping[str, Condition]) -> list[str]:
    """Return a shortest circle of conditions through `path`: a list of keys, each in the condition of the one before.

    The list is empty if there is no circle.
    """
    ways, seen = [[path]], set[str]()
    for way in ways:
        for other in rules[way[-1]].allowed:
            if other == path:
                return [*way, path]
            if other in rules and other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []


def _circular(path: str, ring: Sequence[str]) -> str:
    if len(ring) == 2:
        return "the condition of this key depends on the key itself; name another key, or use exclude"
    return f"the conditions depend on each other in a circle ({' needs '.join(ring)}); remove one of them"


def exclude(data: Any, source: Source, chosen: Sequence[str]) -> tuple[Condition, ...]:
    """Read the grid's `exclude`, the conditions of cells to leave out.

    `chosen` are the keys of select.over. They are refused in conditions, since every cell chooses their values.
    """
    if data is None:
        return ()
    if not isinstance(data, list):
        raise source.error("exclude", f"exclude: must be a list of mappings, got {quoted(data)}")
    if len(data) > MOST_RULES:
        raise source.error(
            "exclude", f"exclude: there are {len(data)} conditions, but at most {MOST_RULES} are allowed"
        )
    found = tuple(condition(item, source, f"exclude.{number}") for number, item in enumerate(data))
    for number, item in enumerate(found):
        for path in item.allowed:
            if path in chosen:
                at = f"exclude.{number}"
                raise source.error(
                    at, f"{at}: {path}: every cell chooses this key (select.over), so that it cannot exclude cells"
                )
    return found

"""Read the axes of a search space: choices and ranges of keys, some of them only under a condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.keys import by_path, named_sections, plain_sections, sections, shown
from mclab.config.parse import quoted, typed
from mclab.config.strict import Scalar
from mclab.plan.conditions import When
from mclab.plan.dotted import Setting, pairs, setting, value_at, within
from mclab.plan.rows import axes
from mclab.plan.source import Source
from mclab.plan.space_trials import SpaceAxis

#: The keys of a range.
_RANGE = ("low", "high", "log", "step")
#: Sections whose keys a search may not vary, since the easiest test would win.
_TEST = ("task", "eval")
#: A range with more steps than this is not listed value by value.
MOST_STEPS = 10_000
#: The most steps of a range. With more, a search may as well have none.
MOST_SPLIT = 10**9


@dataclass(frozen=True)
class Axis:
    """A searched key: its possible values, and for a choice the setting of each value."""

    spec: SpaceAxis
    settings: Mapping[Scalar, Setting]
    where: str

    @property
    def path(self) -> str:
        """The key's dotted path."""
        return self.spec.path

    def setting(self, value: Scalar) -> Setting:
        """Return the setting for one of the axis's values."""
        if self.spec.kind == "choice":
            return self.settings[value]
        exact = self.exact(value)
        return Setting(self.path, exact, (), {self.path: exact}, self.where)

    def exact(self, value: Any) -> Any:
        """Return `value`, a number on a step of the range, exactly as an author would write it.

        A sum of steps may differ from it in the last digit, and would then be another run.
        """
        spec = self.spec
        if spec.kind != "float" or spec.step is None:
            return value
        low, step = Decimal(repr(spec.low)), Decimal(repr(spec.step))
        return float(low + round((Decimal(repr(value)) - low) / step) * step)

    def touches(self) -> tuple[str, ...]:
        """Return every key, and every mapping of keys, that is set by at least one value of this axis."""
        if self.spec.kind != "choice":
            return (self.path,)
        return tuple(dict.fromkeys(path for item in self.settings.values() for path in item.touches))

    def example(self) -> Setting:
        """Return one setting of the axis, for messages on where the axis was written."""
        return self.setting(self.spec.values[0] if self.spec.kind == "choice" else self.spec.low)

    def label(self, value: Any) -> Scalar:
        """Return the axis's name for `value`, a run's value of the key.

        Raises `KeyError` if the axis does not have it.
        """
        spec = self.spec
        if spec.kind == "choice":
            for label, item in self.settings.items():
                if item.path in item.flat and typed(item.path, item.value) == value:
                    return label
            raise KeyError(value)
        assert spec.low is not None
        assert spec.high is not None
        inside = isinstance(value, int | float) and spec.low <= value <= spec.high
        if not inside or (spec.step and not _on_step(value, spec)):
            raise KeyError(value)
        return float(value) if spec.kind == "float" else int(value)

    def listed(self) -> tuple[Scalar, ...]:
        """Return every value of the axis; empty if a range has no steps or too many to list."""
        spec = self.spec
        if spec.kind == "choice":
            return spec.values
        step = spec.step or (1 if spec.kind == "int" else None)
        if step is None or spec.low is None or spec.high is None:
            return ()
        count = int((spec.high - spec.low) / step + 1e-9) + 1
        if count > MOST_STEPS:
            return ()
        made = (spec.low + number * step for number in range(count))
        return tuple(int(value) if spec.kind == "int" else self.exact(value) for value in made)


def _on_step(value: float, spec: SpaceAxis) -> bool:
    assert spec.low is not None
    assert spec.step is not None
    away = (value - spec.low) / spec.step
    return abs(away - round(away)) < 1e-9


def axes_of(data: Any, source: Source, when: When, notes: list[str]) -> tuple[Axis, ...]:
    """Return the axes of the file's `space`. An axis with a condition comes after the axes that its condition names.

    Raises `ConfigError` for an unknown key, a value that is neither a list nor a range, and a key that changes the
    test.
    """
    if not data:
        raise source.error(
            "space",
            "space: this block is empty; give it a key to search, e.g. train.lr: {low: 1e-3, high: 1e-1, log: true}",
        )
    if not isinstance(data, Mapping):
        raise source.error("space", f"space: must be a mapping of keys to values, got {quoted(data)}")
    found: list[Axis] = []
    for path, value in pairs(data, sections(), "", f"{source.at('space')}: space"):
        condition = when.rules.get(path)
        found.append(_axis(path, value, source, condition.text if condition else None, notes))
    _refuse_double(found, source)
    return _ordered(found, when)


def _axis(path: str, value: Any, source: Source, when: str | None, notes: list[str]) -> Axis:
    at = f"space.{path}"
    if path == "seed":
        raise source.error(at, "space: seed: the seed is not an axis; write repeats: N, and seed under base")
    if path.partition(".")[0] in _TEST:
        raise source.error(
            at, f"space: {path}: this key changes the test, so that the easiest test would win; vary it in a grid"
        )
    if isinstance(value, Mapping) and path not in named_sections():
        return _range(path, value, source, when)
    if not isinstance(value, list):
        setting(path, value, source.at(at), "space")
        raise source.error(
            at, f"space: {path}: must be a list of values or {{low: ..., high: ...}}, got {quoted(value)}; write [...]"
        )
    ((_, items),) = axes({path: value}, source, "space", notes)
    settings = {_label(item): item for item in items}
    return Axis(SpaceAxis(path, "choice", tuple(settings), when=when), settings, source.at(at))


def _label(item: Setting) -> Scalar:
    """Return a choice in a form that Optuna and its tables can hold: numbers and names unchanged, others as text."""
    value = typed(item.path, item.value, item.where) if item.path in by_path() else item.value
    return value if value is None or isinstance(value, bool | int | float | str) else shown(item.value)


def _range(path: str, data: Mapping[str, Any], source: Source, when: str | None) -> Axis:
    at, where = f"space.{path}", source.at(f"space.{path}")
    setting(path, None, where, "space")
    for key in data:
        if key not in _RANGE:
            hint = did_you_mean(str(key), _RANGE) or f"the keys of a range are {', '.join(_RANGE)}"
            raise source.error(f"{at}.{key}", f"{at}.{key}: unknown key; {hint}")
    if path in sections() or path in plain_sections():
        raise source.error(at, f"space: {path}: this is not a key but a mapping of keys; name one key in it")
    for key in ("low", "high"):
        if key not in data:
            raise source.error(at, f"space: {path}: {key} is missing; write the range as {{low: ..., high: ...}}")
    low, high = (_bound(path, data[key], source, f"{at}.{key}") for key in ("low", "high"))
    kind = "int" if isinstance(low, int) else "float"
    if low > high:
        raise source.error(f"{at}.low", f"space: {path}: low {low} is above high {high}; swap them")
    log, step = _log(path, data, low, source), _step(path, data, low, high, source)
    if log and step is not None:
        raise source.error(f"{at}.step", f"space: {path}: a range cannot have both log and step; keep one")
    return Axis(SpaceAxis(path, kind, (), low, high, log, step, when), {}, where)  # type: ignore[arg-type]


def _bound(path: str, value: Any, source: Source, at: str) -> float:
    """Return an end of a range, converted to the type of the key."""
    found = typed(path, value, f"{source.at(at)}: space")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise source.error(
            at, f"space: {path}: this key takes {quoted(value)}, but not a range of numbers; list its values"
        )
    return found


def _log(path: str, data: Mapping[str, Any], low: float, source: Source) -> bool:
    value = data.get("log", False)
    if not isinstance(value, bool):
        raise source.error(f"space.{path}.log", f"space: {path}: log: must be true or false, got {quoted(value)}")
    if value and low <= 0:
        raise source.error(f"space.{path}.low", f"space: {path}: low {low} has no logarithm; take one above 0")
    return value


def _step(path: str, data: Mapping[str, Any], low: float, high: float, source: Source) -> float | None:
    value, at = data.get("step"), f"space.{path}.step"
    if value is None:
        return None
    whole = isinstance(low, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value <= 0:
        kind = "whole number" if whole else "number"
        raise source.error(at, f"space: {path}: step: must be a {kind} above 0, got {quoted(value)}")
    count = (high - low) / value
    if count > MOST_SPLIT:
        raise source.error(
            at, f"space: {path}: step: {shown(value)} makes more than {MOST_SPLIT} steps; take a larger one"
        )
    if abs(count - round(count)) > 1e-9:
        below = low + int(count) * value
        raise source.error(
            f"space.{path}.high",
            f"space: {path}: high {shown(high)} cannot be reached from {shown(low)} in steps of {shown(value)}; take "
            f"{shown(below)} or {shown(below + value)}",
        )
    return value


def _refuse_double(found: Sequence[Axis], source: Source) -> None:
    """Raise `ConfigError` for a key that two axes set, since the later axis would decide its value."""
    for place, axis in enumerate(found):
        for other in islice(found, place):
            for path in axis.touches():
                if path in other.touches() and other.path != axis.path:
                    raise source.error(
                        f"space.{axis.path}", f"space: {path}: both {other.path} and {axis.path} set this key; keep one"
                    )


def _ordered(found: Sequence[Axis], when: When) -> tuple[Axis, ...]:
    """Return the axes in the author's order, but each after the axes that decide whether it exists.

    `When` has already refused conditions that form a circle.
    """
    ready: list[Axis] = []
    left = list(found)
    while left:
        for axis in left:
            rule = when.rules.get(axis.path)
            asked = rule.allowed if rule else ()
            others = [other for other in left if other is not axis]
            if not any(within(path, touched) for other in others for touched in other.touches() for path in asked):
                ready.append(axis)
                left.remove(axis)
                break
        else:  # whole mappings may need each other's keys: then the author's order is kept
            ready, left = [*ready, *left], []
    return tuple(ready)


def start_of(found: Sequence[Axis], base: Mapping[str, Any], when: When) -> tuple[dict[str, Scalar], list[str]]:
    """Return the base as a point of the space, and the paths of the axes whose values do not include the base's."""
    flat, point, strange = dict(base), dict[str, Scalar](), list[str]()
    for axis in found:
        rule = when.rules.get(axis.path)
        if rule and not rule.holds(flat):
            continue
        try:
            point[axis.path] = axis.label(value_at(flat, axis.path)) if axis.path in by_path() else _named(axis, flat)
        except KeyError:
            strange.append(axis.path)
    return point, strange


def _named(axis: Axis, flat: Mapping[str, Any]) -> Scalar:
    """Return the choice, a whole mapping, that the base has key by key. Raises `KeyError` if it has none of them."""
    here = {path: value for path, value in flat.items() if within(path, axis.path)}
    for label, item in axis.settings.items():
        if item.flat == here:
            return label
    raise KeyError(axis.path)

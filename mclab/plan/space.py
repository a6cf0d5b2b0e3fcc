"""A resolved search space: axes, conditions, objectives, and the runs at each of its points."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from mclab.config import baselines
from mclab.config.ids import run_id
from mclab.config.keys import shown
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, Scalar, leaves
from mclab.config.versions import differing, versions
from mclab.plan.cells import Ground, Remarks, cells
from mclab.plan.dotted import Flat, nested, overlaid, parents_first
from mclab.plan.rows import MOST_CELLS, Draft, Rows
from mclab.plan.space_axes import Axis
from mclab.plan.space_trials import Direction, Objective

#: The metrics that can be an objective, and which direction is better. Test is only for the table.
METRICS: Mapping[str, Direction] = {
    "valid.accuracy": "maximize",
    "valid.loss": "minimize",
    "state_floats": "minimize",
    "tokens_per_s": "maximize",
    "params": "minimize",
}

#: Spaces with at most this many combinations of values are checked completely before a search.
MOST_TRIED = 500

Params = Mapping[str, Scalar]


@dataclass(frozen=True)
class Point:
    """The runs at a point, one for each seed; `inert` are the axes that have no effect in these runs."""

    runs: tuple[RunConfig, ...]
    inert: tuple[str, ...]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The ids of the runs; equal for points that have the same runs."""
        return tuple(map(run_id, self.runs))


@dataclass(frozen=True)
class Space:
    """A resolved search space. `start` is the base as a point of the space; it is trial 0."""

    name: str
    question: str | None
    axes: tuple[Axis, ...]
    objectives: tuple[Objective, ...]
    sampler: str
    pruner: str
    start: Params
    ground: Ground
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that a trial averages over."""
        return self.ground.seeds

    def asked(self, axis: Axis, params: Params) -> bool:
        """Return whether the axis exists, given the values chosen so far. Call this in the order of `axes`."""
        rule = self.ground.when.rules.get(axis.path)
        return rule is None or rule.holds(overlaid(self.ground.base, self._settings(params)))

    def point(self, params: Params) -> Point:
        """Return the runs at a point. Raises `ConfigError` if a rule between keys or `exclude` refuses the point."""
        return self._point(params, self.ground)

    def flat(self, params: Params) -> Flat:
        """Return the keys of the run at a point by dotted path, as a grid would give them."""
        return overlaid(self.ground.base, self.ground.when.kept(self.ground.base, self._settings(params)))

    def _point(self, params: Params, ground: Ground) -> Point:
        paths = tuple(params)
        (cell,) = cells(Rows(paths, (Draft(self._settings(params)),)), ground, Remarks())
        runs = cell.candidates[0].runs
        return Point(tuple(runs[seed] for seed in self.seeds), tuple(path for path in paths if path not in cell.values))

    def _settings(self, params: Params) -> tuple[Any, ...]:
        return parents_first(axis.setting(params[axis.path]) for axis in self.axes if axis.path in params)

    def base_point(self) -> Point:
        """Return the runs of the base itself, even if `exclude` matches it."""
        return self._point({}, replace(self.ground, exclude=()))

    def ends(self) -> Iterator[tuple[str, RunConfig]]:
        """Yield (name, run) for the base, and for the base with one axis changed to an end of its range or another
        choice.

        Runs that the rules refuse are left out.
        """
        yield "base", self.base_point().runs[0]
        for axis in self.axes:
            spec = axis.spec
            for value in spec.values if spec.kind == "choice" else (spec.low, spec.high):
                try:
                    yield f"{axis.path} {shown(value)}", self.point({**self.start, axis.path: value}).runs[0]
                except ConfigError:
                    continue

    def listed(self) -> list[dict[str, Scalar]]:
        """Return every distinct point that no rule refuses, the base first.

        Raises `ConfigError` if a range has no steps, if there are too many points, and if no point is left.
        """
        values = {axis.path: axis.listed() for axis in self.axes}
        for path, found in values.items():
            if not found:
                raise ConfigError(
                    f"sampler: grid needs a list of values or a step for {path}; add a step, or take another sampler"
                )
        if (count := prod(map(len, values.values()))) > MOST_CELLS:
            raise ConfigError(
                f"sampler: grid would have {count} points, but at most {MOST_CELLS} are allowed; take another sampler"
            )
        points: dict[tuple[str, ...], dict[str, Scalar]] = {}
        for combo in self._combos(values):
            try:
                points.setdefault(self.point(combo).run_ids, combo)
            except ConfigError:
                continue
        base = self.base_point().run_ids
        if not points:
            raise ConfigError("sampler: the rules between keys allow no point of the grid")
        return [points[name] for name in sorted(points, key=lambda name: name != base)]

    def _combos(self, values: Mapping[str, tuple[Scalar, ...]]) -> Iterator[dict[str, Scalar]]:
        seen: set[tuple[tuple[str, Scalar], ...]] = set()
        for combo in product(*values.values()):
            every = dict(zip(values, combo, strict=True))
            kept: dict[str, Scalar] = {}
            for axis in self.axes:
                if self.asked(axis, kept):
                    kept[axis.path] = every[axis.path]
            key = tuple(kept.items())
            if key not in seen:
                seen.add(key)
                yield kept

    def doubts(self) -> list[str]:
        """Return warnings about a small space: an axis that exists at no point, or rules that allow no point."""
        values = {axis.path: axis.listed() for axis in self.axes}
        if not all(values.values()) or prod(map(len, values.values())) > MOST_TRIED:
            return []
        combos = list(self._combos(values))
        never = [axis.path for axis in self.axes if not any(axis.path in combo for combo in combos)]
        found = [f"when: the condition of {path} holds at no point of the space" for path in never]
        return (
            found if any(map(self._allowed, combos)) else [*found, "the rules between keys allow no point of the space"]
        )

    def _allowed(self, params: Params) -> bool:
        try:
            self.point(params)
        except ConfigError:
            return False
        return True

    def size(self) -> int | None:
        """Return the number of combinations of values, without regard to conditions; `None` if a range has no steps."""
        counts = [len(axis.listed()) for axis in self.axes]
        return prod(counts) if all(counts) else None

    def describe(self) -> dict[str, Any]:
        """Return a description of the search: plain data by name, to be compared and shown line by line.

        Two searches are the same if their descriptions are equal.
        """
        base = dict(leaves(self.base_point().runs[0]))
        written = dict(leaves(parse_run(nested(overlaid(self.ground.base, self.ground.given)))))
        searched = ("seed", *(axis.path for axis in self.axes if axis.spec.when is None))
        moved = self._versions()
        return {
            **({"versions": moved} if moved else {}),
            "objective": [each.metric for each in self.objectives],
            "seeds": list(self.seeds),
            "exclude": [rule.text for rule in self.ground.exclude],
            "space": {axis.path: words(axis) for axis in self.axes},
            "base": {path: _plain(value) for path, value in base.items() if path not in searched},
            # Keys without effect in the base may have one at other points.
            "elsewhere": {
                path: _plain(value)
                for path, value in written.items()
                if path not in searched and value != base.get(path, value)
            },
        }

    def _versions(self) -> dict[str, int]:
        """Return the versions of all formulas that are used by the base or by the base with one axis changed."""
        found = versions(self.base_point().runs[0])
        for axis in self.axes:
            for value in axis.listed():
                with suppress(ConfigError):
                    found |= versions(self.point({axis.path: value}).runs[0])
        return dict(sorted(found.items()))


def words(axis: Axis) -> str:
    """Return the values of an axis in words, with its condition, e.g. `[1, 2]` or `1 to 9 (log)`."""
    spec = axis.spec
    if spec.kind == "choice":
        text = shown(spec.values)
    else:
        step = f", step {shown(spec.step)}" if spec.step else ""
        text = f"{shown(spec.low)} to {shown(spec.high)}{' (log)' if spec.log else ''}{step}"
    return f"{text} when {spec.when}" if spec.when else text


def completed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored description with the keys that did not exist then, at the values that their absence means.

    Older descriptions lack `elsewhere`, the values of keys without effect in the base. If such a key existed then, its
    value is unknown, so the present one is taken.
    """
    old, new = before.get("base", {}), now["base"]
    every = {**baselines.completed(new), **baselines.completed(old)}
    missing = [path for path in new if path not in old and path not in before.get("space", {})]
    unknown = {path: value for path, value in now["elsewhere"].items() if path in old}
    base = {**old, **{path: _plain(every[path]) for path in missing if path in every}}
    return {**before, "base": base, "elsewhere": before.get("elsewhere", unknown)}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two descriptions, one line each."""
    lines = []
    if moved := differing(before.get("versions", {}), now.get("versions", {})):
        lines.append(f"it was made with {moved} now")
    for part in ("objective", "seeds", "exclude"):
        if before.get(part) != now[part]:
            lines.append(f"{part} was {shown(before.get(part))}, now it is {shown(now[part])}")
    for part in ("space", "base"):
        old, new = before.get(part, {}), now[part]
        if part == "base":
            old, new = {**old, **before.get("elsewhere", {})}, {**new, **now["elsewhere"]}
        for path in dict.fromkeys((*old, *new)):
            if old.get(path, ...) == new.get(path, ...):
                continue
            was = shown(old[path]) if path in old else "absent"
            lines.append(f"{part} {path} was {was}, now it is {shown(new[path]) if path in new else 'absent'}")
    return lines

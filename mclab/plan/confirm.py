"""From the best point of a search to a grid that confirms it: one choice changed at a time, on seeds of its own."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mclab.config.keys import shown
from mclab.config.strict import ConfigError, Scalar
from mclab.plan.dotted import ABSENT, Flat, nested, value_at, within
from mclab.plan.seeds import TOLD, UNTIL
from mclab.plan.space import Params, Point, Space
from mclab.plan.space_axes import Axis
from mclab.plan.space_trials import Trial, Trials

#: The first row: the point itself.
BEST = "best"
#: Within this much accuracy a changed choice is as good as the best one's.
EVEN = 0.02
#: A range with at most so many values is tried at each; another at this share of its width below and above the best.
MOST_VALUES, STEP = 5, 0.25
MIXER = "model.mixer"


@dataclass(frozen=True)
class Change:
    """One choice changed at the best point: the axis, the row's name, and the point that it leads to."""

    axis: str
    name: str
    params: Params


@dataclass(frozen=True)
class Confirmation:
    """The grid around a trial: its rows but the first, and what could not be tried, with the reason."""

    trial: Trial
    changes: tuple[Change, ...]
    data: dict[str, Any]
    refused: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The grid as a file."""
        lines = [
            f"# One change at a time around trial {self.trial.number} of a search, written by mclab sweep --confirm."
        ]
        for key, value in self.data.items():
            if key == "changes":
                lines += ["changes:", *(f"  {_json(name)}: {_json(change)}" for name, change in value.items())]
            else:
                lines.append(f"{key}: {_json(value)}")
        return "\n".join(lines) + "\n"

    def axis_of(self, name: str) -> str | None:
        """The axis that the row of this name changes."""
        return next((change.axis for change in self.changes if change.name == name), None)


def confirmation(space: Space, found: Trials) -> Confirmation:
    """One change at a time around the best trial of a study of this space.

    Raises `ConfigError` where no trial is done, and where nothing can be changed.
    """
    if not found.best():
        raise ConfigError("--confirm: no trial is done, so there is no best point to confirm")
    trial = found.best()[0]
    best = space.point(trial.params)
    changes, refused = _changes(space, trial, best)
    if not changes:
        raise ConfigError(f"--confirm: nothing can be changed at trial {trial.number}: every axis has one value there")
    base = space.flat(trial.params)
    data = {
        "question": f"Does each choice of the best point of {found.study} (trial {trial.number}) matter?",
        "base": nested(base),
        "changes": {BEST: {}, **{each.name: _difference(base, space.flat(each.params)) for each in changes}},
        "seeds": seeds_of(space),
    }
    return Confirmation(trial, tuple(changes), data, tuple(refused))


def seeds_of(space: Space) -> Any:
    """Seeds until told, none that the search has used: the score of the best of many trials is partly the luck of
    those."""
    return {UNTIL: TOLD, "from": max(space.seeds) + 1, "even": EVEN}


def _changes(space: Space, trial: Trial, best: Point) -> tuple[list[Change], list[str]]:
    """Every other value of each axis that changes something at the best point, where rules between keys allow it."""
    names, changes, refused = _names(space), list[Change](), list[str]()
    seen = {best.run_ids}
    for axis in space.axes:
        if axis.path not in trial.params or axis.path in trial.inert:
            continue
        for value in _others(axis, trial.params[axis.path]):
            name, params = f"{names[axis.path]}={shown(value)}", _moved(space, trial.params, axis.path, value)
            try:
                point = space.point(params)
            except ConfigError as error:
                refused.append(f"{name}: {error.lines[0]}")
                continue
            if point.run_ids not in seen:
                seen.add(point.run_ids)
                changes.append(Change(axis.path, name, params))
    return changes, refused


def _names(space: Space) -> dict[str, str]:
    """The last part of each axis, the whole path where two would be the same."""
    last = [axis.path.rpartition(".")[2] for axis in space.axes]
    return {a.path: a.path if last.count(word) > 1 else word for a, word in zip(space.axes, last, strict=True)}


def _others(axis: Axis, at: Scalar) -> Iterator[Scalar]:
    """The values to be tried in place of the best one."""
    listed = axis.listed()
    if axis.spec.kind == "choice" or 0 < len(listed) <= MOST_VALUES:
        yield from (value for value in listed if value != at)
        return
    place = axis.spec.share(float(at))  # type: ignore[arg-type]
    for share in (max(0.0, place - STEP), min(1.0, place + STEP)):
        value = _rounded(axis, axis.spec.at(share))
        if value != at:
            yield value


def _rounded(axis: Axis, value: float) -> Scalar:
    """On the range's step; three digits where it has none."""
    spec = axis.spec
    assert spec.low is not None
    assert spec.high is not None
    if spec.step or spec.kind == "int":
        step = spec.step or 1
        value = spec.low + round((value - spec.low) / step) * step
        return round(value) if spec.kind == "int" else float(axis.exact(value))
    return min(spec.high, max(spec.low, float(f"{value:.3g}")))


def _moved(space: Space, params: Params, path: str, value: Scalar) -> Params:
    """The point with one axis moved, without what its conditions then take away. An axis that they bring has no best
    value yet and stays as in the search's base."""
    kept: dict[str, Scalar] = {}
    for axis in space.axes:
        if space.asked(axis, kept) and (axis.path == path or axis.path in params):
            kept[axis.path] = value if axis.path == path else params[axis.path]
    return kept


def _difference(base: Flat, row: Flat) -> dict[str, Any]:
    """The settings that lead from one to the other; another kind of mixer as a whole."""
    change: dict[str, Any] = {}
    if value_at(base, f"{MIXER}.name") != value_at(row, f"{MIXER}.name") or (MIXER in base) != (MIXER in row):
        change[MIXER] = row[MIXER] if MIXER in row else nested(row)["model"]["mixer"]
    for path in (*row, *(path for path in base if path not in row)):
        if MIXER in change and within(path, MIXER):
            continue
        value = row[path] if path in row else value_at(row, path)
        if value is not ABSENT and (path not in base or base[path] != value):
            change[path] = value
    return change


def _json(value: Any) -> str:
    """JSON is YAML, and quotes every text that YAML would take for something else."""
    return json.dumps(value, ensure_ascii=False)

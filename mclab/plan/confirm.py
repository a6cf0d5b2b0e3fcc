"""Make the confirming grid of a search: it changes one choice at a time at the best point, on other seeds."""

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

#: The name of the first row, which is the best point itself.
BEST = "best"
#: A changed choice counts as even with the best one if their accuracies differ by no more than this.
EVEN = 0.02
#: A range of at most `MOST_VALUES` values is tried at each of them. A longer one is tried below and above the best
#: value, at a distance of `STEP` times its width.
MOST_VALUES, STEP = 5, 0.25
MIXER = "model.mixer"


@dataclass(frozen=True)
class Change:
    """A change of one choice at the best point: its axis, the name of its row, and the changed point."""

    axis: str
    name: str
    params: Params


@dataclass(frozen=True)
class Confirmation:
    """The confirming grid around a trial, as `data`.

    `changes` are all its rows except the first; `refused` are the changes that rules do not allow, with the reason.
    """

    trial: Trial
    changes: tuple[Change, ...]
    data: dict[str, Any]
    refused: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The grid as the text of a file."""
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
        """Return the axis that the row with this name changes."""
        return next((change.axis for change in self.changes if change.name == name), None)


def confirmation(space: Space, found: Trials) -> Confirmation:
    """Return the grid that changes one choice at a time at the best trial of `found`, a study of this space.

    Raises `ConfigError` if no trial is done, and if nothing can be changed.
    """
    if not found.best():
        raise ConfigError("--confirm: no trial is finished, so that there is no best point to confirm")
    trial = found.best()[0]
    best = space.point(trial.params)
    changes, refused = _changes(space, trial, best)
    if not changes:
        raise ConfigError(
            f"--confirm: nothing can be changed at trial {trial.number}, because every axis has only one value there"
        )
    base = space.flat(trial.params)
    data = {
        "question": f"Does each choice of the best point of {found.study} (trial {trial.number}) matter?",
        "base": nested(base),
        "changes": {BEST: {}, **{each.name: _difference(base, space.flat(each.params)) for each in changes}},
        "seeds": seeds_of(space),
    }
    return Confirmation(trial, tuple(changes), data, tuple(refused))


def seeds_of(space: Space) -> Any:
    """Return the `seeds` of the confirming grid: until told, beginning after the seeds of the search.

    The seeds of the search are not used again, since the best of many trials owes some of its score to luck on these
    seeds.
    """
    return {UNTIL: TOLD, "from": max(space.seeds) + 1, "even": EVEN}


def _changes(space: Space, trial: Trial, best: Point) -> tuple[list[Change], list[str]]:
    """Return the changes to every other value of each axis, and the changes that rules between keys refuse.

    Axes and values that change nothing at the best point are left out.
    """
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
    """Return {path: name} for the axes: the last part of the path, or the whole path if that is not unique."""
    last = [axis.path.rpartition(".")[2] for axis in space.axes]
    return {a.path: a.path if last.count(word) > 1 else word for a, word in zip(space.axes, last, strict=True)}


def _others(axis: Axis, at: Scalar) -> Iterator[Scalar]:
    """Yield the values to try instead of the best value `at`."""
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
    """Round a value to the step of the range, or to three digits if the range has none."""
    spec = axis.spec
    assert spec.low is not None
    assert spec.high is not None
    if spec.step or spec.kind == "int":
        step = spec.step or 1
        value = spec.low + round((value - spec.low) / step) * step
        return round(value) if spec.kind == "int" else float(axis.exact(value))
    return min(spec.high, max(spec.low, float(f"{value:.3g}")))


def _moved(space: Space, params: Params, path: str, value: Scalar) -> Params:
    """Return the point after the axis `path` is set to `value`, without the axes whose conditions then fail.

    An axis whose condition holds only then has no best value yet; it keeps the value of the search's base.
    """
    kept: dict[str, Scalar] = {}
    for axis in space.axes:
        if space.asked(axis, kept) and (axis.path == path or axis.path in params):
            kept[axis.path] = value if axis.path == path else params[axis.path]
    return kept


def _difference(base: Flat, row: Flat) -> dict[str, Any]:
    """Return the settings that turn `base` into `row`; another kind of mixer is given as a whole mapping."""
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
    """Return `value` as JSON, which is also YAML: every text that YAML could read as something else is in quotes."""
    return json.dumps(value, ensure_ascii=False)

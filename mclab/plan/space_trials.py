"""The results of a search as plain data, which the search writes as `trials.json` and the reports read."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from math import log
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from mclab.config.strict import TOO_LARGE, ConfigError, Scalar, refuse_large

#: The status of a trial. `done`, `pruned`, `diverged`, `oom` and `failed` come from its runs, and such a trial counts.
#: `refused`: a rule between keys forbids the point, which was never trained. `lost`: the trial was given up, and
#: another one took over its parameters. `running` and `waiting`: the trial has not ended.
Status = Literal["done", "pruned", "diverged", "oom", "failed", "refused", "lost", "running", "waiting"]
#: The statuses of ended trials that count towards the number that was asked for.
COUNTED: tuple[Status, ...] = ("done", "pruned", "diverged", "oom", "failed")
Kind = Literal["choice", "int", "float"]
Direction = Literal["maximize", "minimize"]
Whole = Annotated[int, Field(ge=0, lt=TOO_LARGE)]


@dataclass(frozen=True)
class SpaceAxis:
    """One searched key.

    A choice has `values` in the author's order: numbers and names unchanged, `null` as None, lists and mappings as
    text. A range has `low` and `high`, both included, and `log` or a `step` (without a step, all values in between).
    `when` is the text of the condition, if the key does not exist at every point.
    """

    path: str
    kind: Kind
    values: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    when: str | None = None

    def at(self, share: float) -> float:
        """Return the value at the fraction `share` (0 to 1) of the range, on its linear or logarithmic scale."""
        assert self.low is not None
        assert self.high is not None
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share

    def share(self, value: float) -> float:
        """Return the fraction of the range, 0 to 1, at which `value` is; 0.5 if the range has one value.

        Inverse of `at`.
        """
        assert self.low is not None
        assert self.high is not None
        if self.low == self.high:
            return 0.5
        if self.log:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Objective:
    """What a search optimises: a key of `Trial.metrics`, and which direction is better."""

    metric: str
    direction: Direction


@dataclass(frozen=True)
class Trial:
    """One point of the space and what was measured there.

    `params` holds the value of each axis that exists at this point, as in `SpaceAxis.values`. The axes in `inert` have
    no effect, given the other values (for instance, a connector without a gate). `values` are those of the objectives,
    in order; `None` unless the status is done. `metrics` are means over the seeds: valid.accuracy, valid.loss,
    test.accuracy, test.loss, state_floats (fixed and cached), params, tokens_per_s; empty unless done. Choices are made
    on valid; test is only for the table.

    `run_ids` are the ids of the records, one for each seed. `repeat_of` is the earlier trial that measured the same
    runs. `retry_of` is the trial whose parameters this one took over. `diverged_step` and `error` say what went wrong.
    `duration_s` is the training time of the trial's runs, `None` if nothing was trained for it. `sampler` is the name
    of the sampler that drew the point.
    """

    number: Whole
    status: Status
    params: dict[str, Scalar]
    values: tuple[float, ...] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    inert: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    repeat_of: Whole | None = None
    retry_of: Whole | None = None
    diverged_step: Whole | None = None
    error: str | None = None
    duration_s: float | None = None
    sampler: str | None = None

    @property
    def counts(self) -> bool:
        """True if the trial has ended and counts towards the number that was asked for."""
        return self.status in COUNTED


@dataclass(frozen=True)
class Resampled:
    """The importance of an axis over bootstrap resamples of the trials.

    `lo` and `hi` enclose the middle 95 %; `first` is the share of the resamples in which the axis came first.
    """

    lo: float
    hi: float
    first: float


@dataclass(frozen=True)
class Trials:
    """The present state of a study. `trials` are in the order of their numbers, and include those that do not count.

    `importances` maps metric of an objective -> axis -> share, by PED-ANOVA; the shares of a metric sum to 1. It is
    empty if too few trials have ended, or too few have begun to recall. `good` is the share of the trials that counts
    as good, `resampled` says how far the importances can be trusted, and `other` holds Optuna's own importances if they
    differ.

    `looks` maps trial -> step -> first objective on valid, for a study with one objective. `without_recall` is the
    accuracy of the best predictor that looks at no key. Fields that are newer than a file have their defaults.
    """

    study: str
    question: str | None
    axes: tuple[SpaceAxis, ...]
    objectives: tuple[Objective, ...]
    seeds: tuple[Whole, ...]
    asked: Whole
    trials: tuple[Trial, ...]
    importances: dict[str, dict[str, float]] = field(default_factory=dict)
    resampled: dict[str, dict[str, Resampled]] = field(default_factory=dict)
    other: dict[str, dict[str, float]] = field(default_factory=dict)
    good: float | None = None
    without_recall: float | None = None
    looks: dict[int, dict[int, float]] = field(default_factory=dict)

    @property
    def done(self) -> tuple[Trial, ...]:
        """The trials that are done, one for each distinct set of runs."""
        first: dict[tuple[str, ...], Trial] = {}
        for trial in self.trials:
            if trial.status == "done":
                first.setdefault(trial.run_ids, trial)
        return tuple(first.values())

    def best(self) -> tuple[Trial, ...]:
        """Return the distinct trials that are done, sorted by the first objective, the best first; ties by number."""
        sign = -1 if self.objectives[0].direction == "maximize" else 1
        return tuple(sorted(self.done, key=lambda trial: (sign * (trial.values or (0.0,))[0], trial.number)))

    def front(self) -> tuple[Trial, ...]:
        """Return the Pareto front: the distinct done trials that no other trial beats, sorted by the second objective.

        A trial beats another if it is better in one objective and not worse in the other.
        """
        signs = [-1 if each.direction == "maximize" else 1 for each in self.objectives]
        cost = {trial.number: [s * v for s, v in zip(signs, trial.values or (), strict=True)] for trial in self.done}
        kept = [trial for trial in self.done if not any(_beats(cost[n], cost[trial.number]) for n in cost)]
        return tuple(sorted(kept, key=lambda trial: (cost[trial.number][::-1], trial.number)))


def _beats(first: list[float], second: list[float]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def as_dict(found: Trials) -> dict[str, Any]:
    """Return the study as plain data, which JSON keeps exactly."""
    return asdict(found)


def from_dict(data: Any, where: str = "trials.json") -> Trials:
    """Return the study that `as_dict` turned into `data`.

    Every type is checked. Raises `ConfigError` for other data.
    """
    try:
        refuse_large(data)
        found = _trials_reader().validate_json(json.dumps(data, allow_nan=False), strict=True)
        _check(found)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: these are not trials of mclab ({_reason(error)})") from None
    return found


def trial_from(values: Mapping[str, Any], where: str) -> Trial:
    """Return the trial with these values.

    Raises `ConfigError` if a type is wrong, since other programs can write to a study.
    """
    try:
        return _trial_reader().validate_json(json.dumps(values), strict=True)
    except ValueError as error:
        raise ConfigError(f"{where}: this is not a trial of mclab ({_reason(error)})") from None


@cache
def _trials_reader() -> TypeAdapter[Trials]:
    return TypeAdapter(Trials)


@cache
def _trial_reader() -> TypeAdapter[Trial]:
    return TypeAdapter(Trial)


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


def _check(found: Trials) -> None:
    """Raise `ValueError` if parts of the data contradict each other although their types are right."""
    axes = {axis.path: axis for axis in found.axes}
    if len(axes) < len(found.axes) or not found.objectives or not found.seeds:
        raise ValueError("an axis is listed twice, or there is no objective or no seed")
    for axis in found.axes:
        if axis.kind != "choice" and (axis.low is None or axis.high is None):
            raise ValueError(f"axis {axis.path} has no bounds")
    if len({trial.number for trial in found.trials}) < len(found.trials):
        raise ValueError("two trials have the same number")
    for trial in found.trials:
        if strange := [path for path, value in trial.params.items() if not _is_on(axes.get(path), value)]:
            raise ValueError(f"trial {trial.number} has a value of {strange[0]} that was not searched")
        if trial.values is not None and len(trial.values) < len(found.objectives):
            raise ValueError(f"trial {trial.number} lacks a value of {found.objectives[-1].metric}")


def _is_on(axis: SpaceAxis | None, value: Scalar) -> bool:
    if axis is None or axis.kind == "choice":
        return axis is not None and value in axis.values
    return not isinstance(value, bool) and isinstance(value, int if axis.kind == "int" else int | float)

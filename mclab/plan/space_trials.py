"""What came of a sweep, in plain data: the contract between search and reports, and what `trials.json` holds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mclab.config.strict import ConfigError, Scalar

#: A trial's end as mclab says it. `done`, `pruned`, `diverged`, `oom` and `failed` are its runs' and count as trials;
#: `refused` breaks a rule between keys and was never trained; `lost` was given up by a process that died, and retried;
#: `running` and `waiting` have no end yet.
Status = Literal["done", "pruned", "diverged", "oom", "failed", "refused", "lost", "running", "waiting"]
#: Statuses of trials that are over and count towards the number that was asked for.
COUNTED: tuple[Status, ...] = ("done", "pruned", "diverged", "oom", "failed")
Kind = Literal["choice", "int", "float"]
Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class SpaceAxis:
    """One searched key.

    A choice has `values` in the author's order: numbers and words as they are, `null` as None, lists and mappings as
    their text. The others have `low` and `high`, both included, `log` or a `step` (None: any between). `when` is the
    condition's text, where the key is not at every point.
    """

    path: str
    kind: Kind
    values: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    when: str | None = None


@dataclass(frozen=True)
class Objective:
    """What is searched for: a key of `Trial.metrics`, and which way is better."""

    metric: str
    direction: Direction


@dataclass(frozen=True)
class Trial:
    """One point of the space and what was measured there.

    `params` holds the value of each axis that exists at this point, as in `SpaceAxis.values`; those in `inert` change
    nothing beside the others (a connector without a gate). `values` are the objectives', in order; None unless the
    status is done. `metrics` are means over the seeds: valid.accuracy, valid.loss, test.accuracy, test.loss,
    state_floats (fixed and cached), params, tokens_per_s; empty unless done. Choices are made on valid; test is for
    the table alone.

    `run_ids` are the records, one a seed. `repeat_of` is the trial that measured the same runs before. `retry_of` is
    the trial whose parameters this one took over. `diverged_step` and `error` say what went wrong. `duration_s` is the
    training time of its own runs, None where nothing was trained. `sampler` is the one that drew the point.
    """

    number: int
    status: Status
    params: dict[str, Scalar]
    values: tuple[float, ...] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    inert: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    repeat_of: int | None = None
    retry_of: int | None = None
    diverged_step: int | None = None
    error: str | None = None
    duration_s: float | None = None
    sampler: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is one of the trials that were asked for, and over."""
        return self.status in COUNTED


@dataclass(frozen=True)
class Trials:
    """A study, as far as it is. `importances`: objective's metric -> axis -> share, by PED-ANOVA, which sum to 1; empty
    while there are too few trials. `trials` are in order of number, those that do not count among them.
    """

    study: str
    question: str | None
    axes: tuple[SpaceAxis, ...]
    objectives: tuple[Objective, ...]
    seeds: tuple[int, ...]
    asked: int
    trials: tuple[Trial, ...]
    importances: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def done(self) -> tuple[Trial, ...]:
        """Those with values, one for each distinct set of runs: repeats are left out."""
        first: dict[tuple[str, ...], Trial] = {}
        for trial in self.trials:
            if trial.status == "done":
                first.setdefault(trial.run_ids, trial)
        return tuple(first.values())

    def best(self) -> tuple[Trial, ...]:
        """The distinct trials that are done, the best first objective first; equal ones in order of number."""
        sign = -1 if self.objectives[0].direction == "maximize" else 1
        return tuple(sorted(self.done, key=lambda trial: (sign * (trial.values or (0.0,))[0], trial.number)))

    def front(self) -> tuple[Trial, ...]:
        """The distinct trials that no other beats in one objective without losing in another, by the second one."""
        signs = [-1 if each.direction == "maximize" else 1 for each in self.objectives]
        cost = {trial.number: [s * v for s, v in zip(signs, trial.values or (), strict=True)] for trial in self.done}
        kept = [trial for trial in self.done if not any(_beats(cost[n], cost[trial.number]) for n in cost)]
        return tuple(sorted(kept, key=lambda trial: (cost[trial.number][::-1], trial.number)))


def _beats(first: list[float], second: list[float]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def as_dict(found: Trials) -> dict[str, Any]:
    """Plain data that JSON keeps exactly."""
    return asdict(found)


def from_dict(data: Mapping[str, Any], where: str = "trials.json") -> Trials:
    """What `as_dict` described. Raises `ConfigError`."""
    try:
        return _trials(data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: holds no trials of mclab ({type(error).__name__}: {error})") from None


def _trials(data: Mapping[str, Any]) -> Trials:
    return Trials(
        study=data["study"],
        question=data["question"],
        axes=tuple(SpaceAxis(**{**axis, "values": tuple(axis["values"])}) for axis in data["axes"]),
        objectives=tuple(Objective(**each) for each in data["objectives"]),
        seeds=tuple(data["seeds"]),
        asked=data["asked"],
        trials=tuple(map(_trial, data["trials"])),
        importances={metric: dict(shares) for metric, shares in data["importances"].items()},
    )


def _trial(data: Mapping[str, Any]) -> Trial:
    values = None if data["values"] is None else tuple(data["values"])
    return Trial(**{**data, "values": values, "inert": tuple(data["inert"]), "run_ids": tuple(data["run_ids"])})

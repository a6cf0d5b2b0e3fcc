"""Prune by the median: a run is stopped if it does worse than half of the earlier trials at the same step.

The rule is Optuna's `MedianPruner`: at least five trials must be done, and a run's best evaluation so far is compared
with the median of the other trials at that step. Here the rule applies only from the step at which most of these trials
recall more than the best predictor without recall. Before that step all runs are on the plateau at the start of
learning, and pruning would be a matter of chance. The medians are sent along with a run, so that a run in a worker
process or on another machine is stopped too; they are those at the time when the run was submitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from statistics import median

from mclab.config.options import Keep
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig
from mclab.workers import Progress

#: The number of trials that must be done before any is stopped.
STARTUP = 5


def medians(curves: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return {step: median of the values that done trials had there}; empty if fewer than `STARTUP` are done."""
    if len(curves) < STARTUP:
        return {}
    steps: dict[int, list[float]] = {}
    for curve in curves:
        for step, value in curve.items():
            steps.setdefault(step, []).append(value)
    known = {step: [value for value in values if not isnan(value)] for step, values in steps.items()}
    return {step: median(values) for step, values in known.items() if values}


def bars(curves: Sequence[Mapping[int, float]], begun: Sequence[int | None]) -> dict[int, float]:
    """Return `medians`, only for the steps at which more than half of the done trials had begun to recall.

    `begun` holds for each trial the step at which it began to recall, `None` if it never did.
    """
    return {
        step: bar
        for step, bar in medians(curves).items()
        if 2 * sum(first is not None and first <= step for first in begun) > len(begun)
    }


class Judge:
    """Decides at each evaluation which replicas continue. NaN is ignored, since divergence has a status of its own."""

    def __init__(self, metric: str, bars: Mapping[int, float], replicas: int) -> None:
        self._metric, self._bars = metric.removeprefix("valid."), bars
        self._sign = -1 if self._metric == "loss" else 1
        self._best: list[float | None] = [None] * replicas

    def __call__(self, step: int, scores: Sequence[Mapping[str, Score]]) -> list[bool]:
        """Return [R]: `False` for a replica whose best evaluation so far is worse than the median at `step`."""
        return [self._continues(r, step, getattr(score[ALL], self._metric)) for r, score in enumerate(scores)]

    def _continues(self, r: int, step: int, value: float) -> bool:
        own = self._sign * value
        best = self._best[r]
        if not isnan(own) and (best is None or own > best):
            best = self._best[r] = own
        bar = self._bars.get(step)
        return best is None or bar is None or best >= self._sign * bar


@dataclass
class Pruned:
    """Trains as `mclab.train.train_pack` does, but stops runs that are below `bars`.

    The owner replaces `bars` when more trials are done.
    """

    metric: str
    bars: Mapping[int, float] = field(default_factory=dict)

    def __call__(
        self, runs: Sequence[RunConfig], *, device: str, progress: Progress | None = None, keep: Keep | None = None
    ) -> list[Outcome]:
        """Train `runs`; see `mclab.workers.Train`."""
        from mclab.train import train_pack

        judge = Judge(self.metric, self.bars, len(runs))
        return train_pack(runs, device=device, progress=progress, keep=keep, on_evaluation=judge)


def evaluations(curves: Iterable[Sequence[Mapping[str, object]]], metric: str) -> dict[int, float]:
    """Return {step: mean of `metric` over `curves`, the curves of the seeds}, for the steps that all curves have.

    The mean is NaN if a curve lacks the value.
    """
    rows = [dict(_values(curve, metric.removeprefix("valid."))) for curve in curves]
    if not rows:
        return {}
    steps = [step for step in rows[0] if all(step in row for row in rows)]
    return {step: sum(row[step] for row in rows) / len(rows) for step in steps}


def _values(curve: Sequence[Mapping[str, object]], metric: str) -> Iterable[tuple[int, float]]:
    for evaluation in curve:
        valid = evaluation.get("valid")
        score = valid.get(ALL) if isinstance(valid, Mapping) else None
        value = score.get(metric) if isinstance(score, Mapping) else None
        step = evaluation["step"]
        assert isinstance(step, int)
        yield step, float(value) if isinstance(value, int | float) else float("nan")

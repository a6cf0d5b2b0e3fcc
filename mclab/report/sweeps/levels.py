"""Divide an axis of a search into levels, and gather the results of the trials at each level."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mclab.plan.comparable import comparable
from mclab.plan.space_trials import SpaceAxis, Trial, Trials
from mclab.report.stats import Spread, spread
from mclab.report.text import NOTHING, value_text

#: A range with at most `MOST_VALUES` values has a level for each value; any other range has `BINS` levels of equal
#: width.
MOST_VALUES, BINS = 8, 5
#: The statuses of trials that ended without a final result. A pruned trial was poor; the others say nothing about the
#: point.
LOST = ("pruned", "diverged", "oom", "failed")


@dataclass(frozen=True)
class Level:
    """A value of an axis, or a part of its range, with the trials that have it.

    `trials` are those that can be compared with each other (`mclab.plan.comparable`), `lost` counts those that ended
    too early. `there` is false for the level of the trials in which the axis does not exist or has no effect.
    """

    label: str
    trials: tuple[Trial, ...]
    lost: int
    there: bool = True

    @property
    def pruned(self) -> int:
        """The number of `trials` that were pruned after the step at which trials are compared."""
        return sum(trial.status == "pruned" for trial in self.trials)

    def objective(self, place: int) -> Spread:
        """Return mean and interval of objective number `place` over the trials of this level."""
        return spread([trial.values[place] for trial in self.trials if trial.values is not None])


def levels_of(found: Trials, axis: SpaceAxis) -> tuple[Level, ...]:
    """Return the levels in the axis's order, also those without trials.

    If the axis does not exist or has no effect in some trials, these trials have a level of their own, the last one.
    """
    cuts = list(_cuts(axis))
    done = {label: list[Trial]() for label, _, _ in cuts}
    lost = dict.fromkeys(done, 0)
    without, lost_without = list[Trial](), 0
    judged = comparable(found).trials
    known = {trial.number for trial in judged}
    for trial in judged:
        label = level_at(axis, trial)
        (without if label is None else done[label]).append(trial)
    for trial in found.trials:
        if trial.status in LOST and trial.repeat_of is None and trial.number not in known:
            label = level_at(axis, trial)
            if label is None:
                lost_without += 1
            else:
                lost[label] += 1
    levels = [Level(label, tuple(done[label]), lost[label]) for label in done]
    if without or lost_without:
        levels.append(Level(NOTHING, tuple(without), lost_without, there=False))
    return tuple(levels)


def level_at(axis: SpaceAxis, trial: Trial) -> str | None:
    """Return the label of the level of a trial; `None` if the axis does not exist or has no effect in the trial."""
    if axis.path not in trial.params or axis.path in trial.inert:
        return None
    value = trial.params[axis.path]
    if axis.kind == "choice":
        return value_text(value)
    at = float(value)  # type: ignore[arg-type]
    cuts = list(_cuts(axis))
    return next((label for label, _, high in cuts if at <= high), cuts[-1][0])


def _cuts(axis: SpaceAxis) -> Iterator[tuple[str, float, float]]:
    """Yield the label of each level and the smallest and the largest value in it; both are 0 for choices."""
    if axis.kind == "choice":
        for text in dict.fromkeys(map(value_text, axis.values)):
            yield text, 0.0, 0.0
        return
    assert axis.low is not None
    assert axis.high is not None
    step = axis.step or (1.0 if axis.kind == "int" and not axis.log else None)
    count = 1 if axis.low == axis.high else math.floor((axis.high - axis.low) / step + 1e-9) + 1 if step else 0
    if 0 < count <= MOST_VALUES or axis.low == axis.high:
        for number in range(count):
            value = axis.low + number * (step or 0.0)
            yield number_text(value), value, value + (step or 0.0) / 2
        return
    edges = [axis.at(number / BINS) for number in range(BINS + 1)]
    texts = next(found for digits in range(3, 18) if len(set(found := [number_text(e, digits) for e in edges])) > BINS)
    for (low, high), (start, end) in zip(pairwise(edges), pairwise(texts), strict=True):
        yield f"{start} to {end}", low, high


def number_text(value: float, digits: int = 3) -> str:
    """Return the number with `digits` significant digits, or as an integer if it is larger."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"

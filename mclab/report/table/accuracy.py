"""Evaluate the scores of records: accuracy, whether it is above a predictor without recall, whether a run learned.

The baseline without recall is the best predictor that looks at no key, on the same test. A row is above it if a
one-sided paired t test over seeds says so; this test is not adjusted for the number of rows
(docs/equations.md#trivial-predictors). A run has learned if its test accuracy is more than 0.05 above that predictor.
Old records do not hold the accuracy of such a predictor, so nothing is said about them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose, log
from statistics import fmean, median
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.select import Curve
from mclab.report.stats import LEAST_PAIRS, SAME, Spread, exceeds

#: A seed with at least this accuracy solves the task; a row and its baseline with at least this accuracy are at the
#: ceiling.
SOLVED = 0.99
#: Two runs compute the same function if their metrics differ by a relative error of no more than this.
EQUAL = 1e-6
ACCURACY, VALUES, FOUND, TOKENS = "accuracy", "value_accuracy", "values_found", "token_accuracy"
#: The loss in nats and in bits. These metrics are not limited to [0, 1].
LOSS, BITS = "loss", "bits"
#: The marks of a row, the most serious first.
AT_CHANCE, FEW_STARTED, IMPROVING, EDGE = "at chance", "few runs started", "still improving", "edge of range"
#: A run has learned if its accuracy exceeds that of the best predictor without recall by more than this.
ABOVE = 0.05
#: A row gets the mark `FEW_STARTED` if less than this share of its runs learned.
STARTED = 0.5
#: A row is still improving if accuracy on valid rose by more than `RISE` after the first fraction `LATE` of the steps.
LATE, RISE = 0.8, 0.02


def score(record: StoredRun, part: str = ALL, metric: str = ACCURACY) -> float | None:
    """Return the test accuracy, or another metric, of a run on a slice or on all slices; `None` if it has no result.

    A diverged run has accuracy 0 and the loss of a uniform guess among all tokens.
    """
    if metric == BITS:
        nats = score(record, part, LOSS)
        return None if nats is None else nats / log(2)
    if record.status == "diverged":
        return 0.0 if metric != LOSS else log(record.config.task.vocab) if record.config else None
    if record.status != "done" or part not in record.test:
        return None
    value = record.test[part].metrics.get(metric)
    return None if value is None else float(value)


def scores(records: Mapping[int, StoredRun], part: str = ALL, metric: str = ACCURACY) -> dict[int, float]:
    """Return the test accuracy, or another metric, by seed; seeds without a result are left out."""
    known = {seed: score(record, part, metric) for seed, record in records.items()}
    return {seed: value for seed, value in known.items() if value is not None}


def same_function(one: StoredRun, other: StoredRun) -> bool:
    """Return whether two finished runs have the same accuracy and loss on every slice that both have."""
    shared = [part for part in one.test if part in other.test]
    if not one.status == other.status == "done" or not shared:
        return False
    pairs = [(one.test[part], other.test[part]) for part in shared]
    return all(_near(a.accuracy, b.accuracy) and _near(a.loss, b.loss) for a, b in pairs)


def _near(one: float | None, other: float | None) -> bool:
    """Return whether two values are equal up to a relative error of `EQUAL`; `False` if one of them is `None`."""
    return one is not None and other is not None and isclose(one, other, rel_tol=EQUAL)


@dataclass(frozen=True)
class Best:
    """The name of the best predictor and its mean accuracy over seeds."""

    name: str
    accuracy: float


@dataclass(frozen=True)
class WithoutRecall:
    """The best predictor without recall on each slice, and under `ALL` the best one over the task's own slices.

    `above` is true if a test shows that the row is above the predictor under `ALL`.
    """

    best: dict[str, Best]
    above: bool

    def accuracy(self, part: str = ALL) -> float | None:
        """Return the accuracy of the best predictor on a slice; `None` if it was not measured there."""
        return self.best[part].accuracy if part in self.best else None


def without_recall(records: Mapping[int, StoredRun], scores: Mapping[int, float]) -> WithoutRecall | None:
    """Return the best predictors without recall for a row, given its records and its accuracies by seed.

    `None` if a record with a score is too old to hold them.
    """
    known = {seed: records[seed].without_recall or {} for seed in scores}
    parts = [part for part in next(iter(known.values()), {}) if all(found.get(part) for found in known.values())]
    if ALL not in parts:
        return None
    best = {part: _best([found[part] for found in known.values()]) for part in parts}
    return WithoutRecall(best, exceeds([scores[seed] - known[seed][ALL][best[ALL].name] for seed in scores]))


def above(records: Mapping[int, StoredRun], parts: Sequence[str]) -> bool:
    """Return whether the mean accuracy over the slices `parts` is above that of the best predictor on each slice.

    This is decided by the one-sided paired t test. It is also true if records are too old to hold the predictors'
    accuracies.
    """
    done = [record for record in records.values() if record.status == "done" and all(p in record.test for p in parts)]
    known = [record.without_recall or {} for record in done]
    if not done or not all(found.get(part) for found in known for part in parts):
        return True
    best = {part: _best([found[part] for found in known]).name for part in parts}
    gaps = [
        fmean(record.test[part].accuracy - found[part].get(best[part], 0.0) for part in parts)
        for record, found in zip(done, known, strict=True)
    ]
    return exceeds(gaps)


def _best(seeds: Sequence[Mapping[str, float]]) -> Best:
    """Return the predictor with the highest mean accuracy over `seeds`; of equal ones, the first.

    A predictor that is missing for a seed counts as 0 there.
    """
    means = {name: fmean(named.get(name, 0.0) for named in seeds) for name in seeds[0]}
    name = max(means, key=lambda each: means[each])
    return Best(name, means[name])


def evaluations(curve: Sequence[Mapping[str, Any]], metric: str) -> Iterator[tuple[int, float]]:
    """Yield step and value of `metric`, over all slices, for each evaluation on valid."""
    for each in curve:
        value = (each.get("valid") or {}).get(ALL, {}).get(metric)
        if value is not None:
            yield int(each["step"]), float(value)


def learned(record: StoredRun) -> bool | None:
    """Return whether the test accuracy of a run is more than 0.05 above the best predictor without recall.

    `False` for a diverged run; `None` if the run has no result or its record lacks the predictor.
    """
    accuracy, best = score(record), (record.without_recall or {}).get(ALL)
    if record.status == "diverged":
        return False
    return None if accuracy is None or not best else accuracy > max(best.values()) + ABOVE


def not_learned(records: Iterable[StoredRun]) -> int | None:
    """Return how many of the runs with a result did not learn; `None` if that is unknown for one of them."""
    found = [learned(record) for record in records if score(record) is not None]
    return None if None in found or not found else found.count(False)


def starts(records: Iterable[StoredRun], curve: Curve | None) -> float | None:
    """Return the median over seeds of the step at which runs start; `None` if the median is infinite.

    A run starts at the first evaluation that is more than 0.05 above the best predictor without recall, and at infinity
    if there is none.
    """
    if curve is None:
        return None
    found = [_began(record, curve(record.run_id)) for record in records if score(record) is not None]
    middle = median(found) if found else inf
    return None if middle == inf else middle


def _began(record: StoredRun, curve: Sequence[Mapping[str, Any]]) -> float:
    best = (record.without_recall or {}).get(ALL)
    if not best:
        return inf
    above = max(best.values()) + ABOVE
    return min((float(step) for step, value in evaluations(curve, ACCURACY) if value > above), default=inf)


def marks(
    accuracy: Spread,
    without_recall: WithoutRecall | None,
    not_learned: int | None,
    gains: Sequence[float],
    at_edge: bool,
) -> tuple[str, ...]:
    """Return the marks of a row, the most serious first.

    `AT_CHANCE`: no test shows the row above the best predictor without recall. `FEW_STARTED`: of at least three runs,
    some learned but fewer than half (it then replaces `AT_CHANCE`), or no run learned although the row is above the
    predictor. `IMPROVING`: the mean of `gains` (see `late_gains`) is above 0.02, and a t test shows it above 0. `EDGE`:
    `at_edge`, a chosen value is at an end of its range. A row that solves the task gets neither of the last two.
    """
    at_chance = without_recall is not None and not without_recall.above
    few = without_recall is not None and _few_started(accuracy.n, not_learned, at_chance)
    found = [FEW_STARTED] if few else [AT_CHANCE] * at_chance
    if (accuracy.mean or 0.0) < SOLVED - SAME:
        improving = bool(without_recall and gains) and fmean(gains) > RISE and exceeds(gains)
        found += [IMPROVING] * improving + [EDGE] * at_edge
    return tuple(found)


def _few_started(n: int, not_learned: int | None, at_chance: bool) -> bool:
    if not_learned is None or n < LEAST_PAIRS:
        return False
    started = n - not_learned
    return started < STARTED * n and (started > 0 or not at_chance)


def late_gains(records: Iterable[StoredRun], curve: Curve | None) -> list[float]:
    """Return for each finished run how much its accuracy on valid rose over the last fifth of the steps.

    Runs without an evaluation before the last fifth are left out. A run that stopped early, because it was good enough,
    keeps its last value.
    """
    gains = []
    for record in records:
        if curve is None or record.config is None or record.status != "done":
            continue
        seen = list(evaluations(curve(record.run_id), ACCURACY))
        before = [value for step, value in seen if step <= LATE * record.config.train.steps]
        gains += [seen[-1][1] - before[-1]] if before else []
    return gains

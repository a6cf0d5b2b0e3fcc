"""What the scores of a record say: its accuracy, whether that is above a predictor without recall, whether it learned.

The baseline without recall is the best predictor that looks at no key, on the same test; a row is above it by a
one-sided paired t test over seeds, not adjusted for the number of rows (docs/equations.md#trivial-predictors). A run
has learned where its test accuracy is more than 0.05 above that predictor. Old records hold no such predictor: they say
nothing of either.
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

#: An accuracy from which a seed counts as solved, and from which two cells are too good to be told apart.
SOLVED = 0.99
#: Metrics nearer than this, relatively, are those of one function.
EQUAL = 1e-6
ACCURACY, VALUES, FOUND, TOKENS = "accuracy", "value_accuracy", "values_found", "token_accuracy"
#: The loss in nats, and in bits: metrics that are no shares of 1.
LOSS, BITS = "loss", "bits"
#: The marks of a row that gets no verdict, in the order in which they are told.
AT_CHANCE, FEW_STARTED, IMPROVING, EDGE = "at chance", "few runs started", "still improving", "edge of range"
#: So far above the best predictor without recall a run is no longer at chance.
ABOVE = 0.05
#: Fewer than this share of the runs have learned: few ever started.
STARTED = 0.5
#: A row still improves where accuracy on valid rose by more than `RISE` after this part of the steps.
LATE, RISE = 0.8, 0.02


def score(record: StoredRun, part: str = ALL, metric: str = ACCURACY) -> float | None:
    """Test accuracy of a run on a slice or on all, or another metric; `None` for a run that has no result.

    A diverged run has accuracy 0, and the loss of a guess among all tokens.
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
    """Test accuracy by seed, of the seeds that have one."""
    known = {seed: score(record, part, metric) for seed, record in records.items()}
    return {seed: value for seed, value in known.items() if value is not None}


def same_function(one: StoredRun, other: StoredRun) -> bool:
    """True where two finished runs agree in accuracy and loss, on all and on each slice that both were tested on."""
    shared = [part for part in one.test if part in other.test]
    if not one.status == other.status == "done" or not shared:
        return False
    pairs = [(one.test[part], other.test[part]) for part in shared]
    return all(_near(a.accuracy, b.accuracy) and _near(a.loss, b.loss) for a, b in pairs)


def _near(one: float | None, other: float | None) -> bool:
    """A loss that is not known is near to nothing."""
    return one is not None and other is not None and isclose(one, other, rel_tol=EQUAL)


@dataclass(frozen=True)
class Best:
    """A predictor's name and its accuracy, mean over seeds."""

    name: str
    accuracy: float


@dataclass(frozen=True)
class WithoutRecall:
    """The best predictor by slice, and under `ALL` that over the task's own slices.

    `above`: by test the cell exceeds the latter.
    """

    best: dict[str, Best]
    above: bool

    def accuracy(self, part: str = ALL) -> float | None:
        """Of the best predictor on a slice; `None` on one that was not tested then."""
        return self.best[part].accuracy if part in self.best else None


def without_recall(records: Mapping[int, StoredRun], scores: Mapping[int, float]) -> WithoutRecall | None:
    """Of a cell's records and accuracies by seed; `None` where a scored record is from before it was stored."""
    known = {seed: records[seed].without_recall or {} for seed in scores}
    parts = [part for part in next(iter(known.values()), {}) if all(found.get(part) for found in known.values())]
    if ALL not in parts:
        return None
    best = {part: _best([found[part] for found in known.values()]) for part in parts}
    return WithoutRecall(best, exceeds([scores[seed] - known[seed][ALL][best[ALL].name] for seed in scores]))


def above(records: Mapping[int, StoredRun], parts: Sequence[str]) -> bool:
    """Is the mean accuracy over these slices above that of the best predictor on each, by the same test?

    True too where the records are from before the predictors' accuracies were stored.
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
    """The first of equal ones; a predictor that some seed lacks counts as 0 there."""
    means = {name: fmean(named.get(name, 0.0) for named in seeds) for name in seeds[0]}
    name = max(means, key=lambda each: means[each])
    return Best(name, means[name])


def evaluations(curve: Sequence[Mapping[str, Any]], metric: str) -> Iterator[tuple[int, float]]:
    """Step and value of each evaluation on valid, over all slices."""
    for each in curve:
        value = (each.get("valid") or {}).get(ALL, {}).get(metric)
        if value is not None:
            yield int(each["step"]), float(value)


def learned(record: StoredRun) -> bool | None:
    """Whether the run rose above the best predictor without recall; a diverged one has not. `None`: nothing tells."""
    accuracy, best = score(record), (record.without_recall or {}).get(ALL)
    if record.status == "diverged":
        return False
    return None if accuracy is None or not best else accuracy > max(best.values()) + ABOVE


def not_learned(records: Iterable[StoredRun]) -> int | None:
    """How many of the runs did not learn, of those that have a result; `None` where one of them does not tell."""
    found = [learned(record) for record in records if score(record) is not None]
    return None if None in found or not found else found.count(False)


def starts(records: Iterable[StoredRun], curve: Curve | None) -> float | None:
    """When learning began: the step of the first evaluation more than 0.05 above the best predictor without recall.

    Median over the seeds; one that never began counts as infinitely late, a median of infinity as `None`.
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
    """What must be mended before the row gets a verdict, the gravest first.

    Few started: fewer than half of at least three runs learned. Where none did, and no test tells the row from the best
    predictor without recall, it is at chance. Still improving: the `late_gains` are above 0.02, by a t test too. Of a
    row that solves the task neither the learning rate nor its last steps say anything.
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
    """By how much accuracy on valid rose over the last fifth of the steps, of each finished run that was evaluated
    before. A run that was stopped early, because it was good enough, keeps its last value."""
    gains = []
    for record in records:
        if curve is None or record.config is None or record.status != "done":
            continue
        seen = list(evaluations(curve(record.run_id), ACCURACY))
        before = [value for step, value in seen if step <= LATE * record.config.train.steps]
        gains += [seen[-1][1] - before[-1]] if before else []
    return gains

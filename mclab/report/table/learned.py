"""Whether runs have learned, and what must be mended in a row before anything follows from it.

A run has learned where its test accuracy is more than 0.05 above the best predictor without recall on the same test.
Records from before that was stored say nothing of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from statistics import fmean, median
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.select import Curve
from mclab.report.stats import LEAST_PAIRS, SAME, exceeds
from mclab.report.table.evaluations import looks_of
from mclab.report.table.row import ACCURACY, SOLVED, Row, score

#: The marks of a row that gets no verdict, in the order in which they are told.
AT_CHANCE, FEW_STARTED, IMPROVING, EDGE = "at chance", "few runs started", "still improving", "edge of range"
#: So far above the best predictor without recall a run is no longer at chance.
ABOVE = 0.05
#: Fewer than this share of the runs have learned: few ever started.
STARTED = 0.5
#: A row still improves where accuracy on valid rose by more than `RISE` after this part of the steps.
LATE, RISE = 0.8, 0.02


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
    return min((float(step) for step, value in looks_of(curve, ACCURACY) if value > above), default=inf)


def marks(row: Row, curve: Curve | None) -> tuple[str, ...]:
    """What must be mended before the row gets a verdict, the gravest first; of a row whose runs all diverged nothing.

    Few started: fewer than half of at least three runs learned. Where none did, and no test tells the row from the best
    predictor without recall, it is at chance.
    Of a row that solves the task neither the learning rate nor its last steps say anything.
    """
    if row.lost or not row.accuracy.n:
        return ()
    found = [FEW_STARTED] if _few_started(row) else [AT_CHANCE] if row.guessing else []
    if (row.accuracy.mean or 0.0) < SOLVED - SAME:
        found += [IMPROVING] * (curve is not None and bool(row.without_recall) and _improving(row, curve))
        found += [EDGE] * bool(row.edges)
    return tuple(found)


def _few_started(row: Row) -> bool:
    if row.without_recall is None or row.not_learned is None or row.accuracy.n < LEAST_PAIRS:
        return False
    started = row.accuracy.n - row.not_learned
    return started < STARTED * row.accuracy.n and (started > 0 or not row.guessing)


def _improving(row: Row, curve: Curve) -> bool:
    gains = [gain for record in row.finished if (gain := _late_gain(record, curve(record.run_id))) is not None]
    return bool(gains) and fmean(gains) > RISE and exceeds(gains)


def _late_gain(record: StoredRun, curve: Sequence[Mapping[str, Any]]) -> float | None:
    """By how much accuracy on valid rose over the last fifth of the steps; `None` where it was not looked at before.

    A run that was stopped early, because it was good enough, keeps its last value.
    """
    if record.config is None:
        return None
    looks = list(looks_of(curve, "accuracy"))
    before = [value for step, value in looks if step <= LATE * record.config.train.steps]
    return looks[-1][1] - before[-1] if before else None

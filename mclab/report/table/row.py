"""One cell of the table: its chosen candidate's records and what they come to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isclose, log
from statistics import fmean, median
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun, StoredScore
from mclab.plan.plan import Candidate, Cell
from mclab.report.sequential import Standing
from mclab.report.stats import Difference, Spread, spread
from mclab.report.table.recall import WithoutRecall

#: An accuracy from which a seed counts as solved, and from which two cells are too good to be told apart.
SOLVED = 0.99
#: Metrics nearer than this, relatively, are those of one function.
EQUAL = 1e-6
ACCURACY, VALUES, FOUND, TOKENS = "accuracy", "value_accuracy", "values_found", "token_accuracy"
#: The loss in nats, and in bits: metrics that are no shares of 1.
LOSS, BITS = "loss", "bits"


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
    """True where two finished runs agree in accuracy and loss, on all and on each slice that both sat: as one would."""
    shared = [part for part in one.test if part in other.test]
    if not one.status == other.status == "done" or not shared:
        return False
    return all(_alike(one.test[part], other.test[part]) for part in shared)


def _alike(one: StoredScore, other: StoredScore) -> bool:
    return _near(one.accuracy, other.accuracy) and _near(one.loss, other.loss)


def _near(one: float | None, other: float | None) -> bool:
    """A loss that is not known is near to nothing."""
    return one is not None and other is not None and isclose(one, other, rel_tol=EQUAL)


@dataclass(frozen=True)
class Row:
    """One cell: what it is, what its chosen candidate's seeds gave, how it compares with the baseline.

    `label` names it in a table or a plot, `told` in a sentence. `values` holds the varied keys that mean something in
    this cell, by path. `picked` holds the selected keys and the learning rate, `edges` those whose chosen value lies at
    the edge of its range. `records` are the chosen candidate's, by seed; `missing` its seeds without one. `difference`,
    `p` (Holm) and `ceiling` are `None` in the baseline's own row, and the last two where the slices are others.
    `accuracy` is over the task's own slices; `slices` holds those, then what `eval.task` adds. `without_recall` is
    `None` where nothing is scored, and where the records are from before it was stored; so is `not_learned`, the number
    of runs that did not rise above it, and `starts`, the median step at which they did. `marks` are what must be mended
    before the row gets a verdict (see `mclab.report.table.learned`), `wanted` the seeds that the row is asked for, and
    `standing` how it stands in a sequential grid. `unmended` says which marks, its own or its baseline's, keep it
    without a verdict.
    """

    cell: Cell
    label: str
    told: str
    values: dict[str, Any]
    picked: dict[str, Any]
    candidate: Candidate | None
    edges: tuple[str, ...]
    records: dict[int, StoredRun]
    missing: tuple[int, ...]
    status: str
    accuracy: Spread
    slices: dict[str, Spread]
    difference: Difference | None = None
    p: float | None = None
    ceiling: bool | None = None
    without_recall: WithoutRecall | None = None
    not_learned: int | None = None
    starts: float | None = None
    marks: tuple[str, ...] = ()
    wanted: int = 0
    standing: Standing | None = None
    unmended: str = ""

    @property
    def run(self) -> RunConfig:
        """A run of the cell: they differ in nothing but seed and selected keys."""
        return next(iter(self.cell.candidates[0].runs.values()))

    @property
    def own(self) -> tuple[str, ...]:
        """The task's own slices: those that the mean is over."""
        return self.run.task.slices

    @property
    def long_answers(self) -> bool:
        """True where an answer is several tokens, so that its tokens can be right where it is not."""
        run = self.run
        return any(task.answer_tokens > 1 for task in (run.task, *(exam.task for exam in run.exams)))

    @property
    def several_values(self) -> bool:
        """True where an answer is several values, and how many of them are right was measured."""
        return any(score(record, part, VALUES) is not None for record in self.finished for part in record.test)

    @property
    def free_answers(self) -> bool:
        """True where answers of several values were also generated freely, and their values counted in any order."""
        return any(score(record, part, FOUND) is not None for record in self.finished for part in record.test)

    @property
    def bytewise(self) -> bool:
        """True where what is wanted is the next byte, so that bits a byte say more than accuracy."""
        return self.run.task.name == "text"

    @property
    def finished(self) -> list[StoredRun]:
        """The records of runs that went to their end."""
        return [record for record in self.records.values() if record.status == "done"]

    def spread_of(self, metric: str, part: str = ALL) -> Spread:
        """A further metric over the seeds."""
        return spread(list(scores(self.records, part, metric).values()))

    @property
    def guessing(self) -> bool:
        """True where the cell learned something, or nothing, that is not above a predictor without recall by test."""
        return self.without_recall is not None and not self.without_recall.above and not self.lost

    @property
    def lost(self) -> bool:
        """True where every run that has a result diverged."""
        return bool(scores(self.records)) and all(r.status != "done" for r in self.records.values())

    @property
    def solved(self) -> int:
        """Seeds with a test accuracy of at least 0.99."""
        return sum(value >= SOLVED for value in scores(self.records).values())

    @property
    def params(self) -> int | None:
        """The trained parameters of one run."""
        return self._first(lambda record: record.params)

    @property
    def state_fixed(self) -> int | None:
        """Floats kept of a sequence, however long it is."""
        return self._first(lambda record: record.state_fixed)

    @property
    def state_cached(self) -> int | None:
        """Floats kept of a sequence in caches that grow with it."""
        return self._first(lambda record: record.state_cached)

    def _first(self, figure: Callable[[StoredRun], int | None]) -> int | None:
        """A figure that every seed shares: that of the first one that has it."""
        return next((value for r in self.records.values() if (value := figure(r)) is not None), None)

    @property
    def tokens_per_s(self) -> float | None:
        """Training tokens per second, mean over the finished runs."""
        return self._mean(lambda record: record.tokens_per_s)

    @property
    def wall_s(self) -> float | None:
        """Seconds that a run took, mean over the finished ones."""
        return self._mean(lambda record: record.wall_s)

    def _mean(self, figure: Callable[[StoredRun], float | None]) -> float | None:
        """Mean over the finished runs; a diverged run stopped early and says nothing about cost."""
        known = [figure(r) for r in self.records.values() if r.status == "done"]
        values = [value for value in known if value is not None]
        return fmean(values) if values else None

    def steps_to_99(self) -> float | None:
        """Median over the seeds; one that never got there counts as infinitely late, a median of infinity as `None`.

        (A mean over those that got there would make a cell that seldom learns look fast.)
        """
        scored = [r for r in self.records.values() if score(r) is not None]
        late = [inf if r.steps_to_99 is None else float(r.steps_to_99) for r in scored]
        middle = median(late) if late else inf
        return None if middle == inf else middle

"""A row of the table: one cell of the plan, the records of its chosen candidate, and statistics of these records."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean, median
from typing import Any

from mclab.config.ids import UNSCIENTIFIC, inert
from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.config.strict import leaves
from mclab.plan.plan import Candidate, Cell, Plan
from mclab.plan.select import Curve, Lookup, choose, edges
from mclab.report.sequential import LookResult
from mclab.report.stats import Difference, Spread, spread
from mclab.report.table.accuracy import (
    FOUND,
    SOLVED,
    VALUES,
    WithoutRecall,
    late_gains,
    marks,
    not_learned,
    score,
    scores,
    starts,
    without_recall,
)
from mclab.report.text import column_names, label

LR = "train.lr"


@dataclass(frozen=True)
class Row:
    """One cell: its values, the results of its chosen candidate over seeds, and the comparison with its baseline.

    `label` is the name of the cell in a table or a plot, `in_text` its name in a sentence. `values` holds, by path, the
    axes that have an effect in this cell. `picked` holds the chosen values of the keys of `select` and of the learning
    rate; `edges` are the paths whose chosen value is at an end of its range. `records` are the records of the chosen
    candidate by seed. `missing` are the seeds without a record; `wanted` is the number of seeds that the plan asks for.
    `accuracy` is over the task's own slices. `slices` has the accuracy on each of these, then on each slice that
    `eval.task` adds. `without_recall` is the baseline without recall, `not_learned` the number of runs that did not
    learn, and `starts` the median step at which runs start. All three are `None` without scores, and in old records,
    which lack that baseline. `difference`, `p` (Holm) and `ceiling` are `None` for the baseline; `p` and `ceiling` are
    also `None` if the baseline was scored on other slices. `look_result` is the result of the row at its last look, in
    a sequential grid. `marks` are those of `table.accuracy.marks`. `unmended` names the marks of the row, or else of
    its baseline, because of which the row has no verdict; it is empty without such marks.
    """

    cell: Cell
    label: str
    in_text: str
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
    look_result: LookResult | None = None
    unmended: str = ""

    @property
    def run(self) -> RunConfig:
        """One run of the cell. All runs of a cell differ only in the seed and in the keys of `select`."""
        return next(iter(self.cell.candidates[0].runs.values()))

    @property
    def own(self) -> tuple[str, ...]:
        """The task's own slices, over which the mean accuracy is taken."""
        return self.run.task.slices

    @property
    def long_answers(self) -> bool:
        """True where an answer has several tokens, so that a wrong answer can have some right tokens."""
        run = self.run
        return any(task.answer_tokens > 1 for task in (run.task, *(variant.task for variant in run.test_variants)))

    @property
    def several_values(self) -> bool:
        """True where an answer has several values and the records hold the share of right values."""
        return any(score(record, part, VALUES) is not None for record in self.finished for part in record.test)

    @property
    def free_answers(self) -> bool:
        """True where answers of several values were also generated freely and their values counted in any order."""
        return any(score(record, part, FOUND) is not None for record in self.finished for part in record.test)

    @property
    def bytewise(self) -> bool:
        """True where the model predicts the next byte, so that bits per byte say more than accuracy."""
        return self.run.task.name == "text"

    @property
    def finished(self) -> list[StoredRun]:
        """The records of the runs that finished (status `done`)."""
        return [record for record in self.records.values() if record.status == "done"]

    def spread_of(self, metric: str, part: str = ALL) -> Spread:
        """Return mean, standard deviation and interval of another metric over the seeds."""
        return spread(list(scores(self.records, part, metric).values()))

    @property
    def guessing(self) -> bool:
        """True if no test shows the row above the best predictor without recall, unless all its runs diverged."""
        return self.without_recall is not None and not self.without_recall.above and not self.lost

    @property
    def lost(self) -> bool:
        """True if there are results and all of them are diverged runs."""
        return bool(scores(self.records)) and all(r.status != "done" for r in self.records.values())

    @property
    def solved(self) -> int:
        """The number of seeds with a test accuracy of at least 0.99."""
        return sum(value >= SOLVED for value in scores(self.records).values())

    @property
    def params(self) -> int | None:
        """The number of parameters of one run."""
        return self._first(lambda record: record.params)

    @property
    def state_fixed(self) -> int | None:
        """The floats in the part of the state that does not grow with the sequence."""
        return self._first(lambda record: record.state_fixed)

    @property
    def state_cached(self) -> int | None:
        """The floats in the part of the state that grows with the sequence."""
        return self._first(lambda record: record.state_cached)

    def _first(self, figure: Callable[[StoredRun], int | None]) -> int | None:
        """Return a figure that is the same for all seeds, from the first record that has it."""
        return next((value for r in self.records.values() if (value := figure(r)) is not None), None)

    @property
    def tokens_per_s(self) -> float | None:
        """The training tokens per second, mean over the finished runs."""
        return self._mean(lambda record: record.tokens_per_s)

    @property
    def wall_s(self) -> float | None:
        """The seconds that a run took, mean over the finished runs."""
        return self._mean(lambda record: record.wall_s)

    def _mean(self, figure: Callable[[StoredRun], float | None]) -> float | None:
        """Return the mean of `figure` over the finished runs. Diverged runs are left out, since they stopped early."""
        known = [figure(r) for r in self.records.values() if r.status == "done"]
        values = [value for value in known if value is not None]
        return fmean(values) if values else None

    def steps_to_99(self) -> float | None:
        """Return the median over seeds of the steps to 99 % accuracy; `None` if the median is infinite.

        A seed that never reached 99 % counts as infinity. (A mean over the seeds that reached it would make a cell that
        seldom learns look fast.)
        """
        scored = [r for r in self.records.values() if score(r) is not None]
        late = [inf if r.steps_to_99 is None else float(r.steps_to_99) for r in scored]
        middle = median(late) if late else inf
        return None if middle == inf else middle


def row_of(plan: Plan, cell: Cell, lookup: Lookup, curve: Curve | None = None, seeds: int | None = None) -> Row:
    """Return the row of a cell over the first `seeds` seeds of the plan, by default over all.

    Without stored runs, the row has no records.
    """
    axes = axis_names(plan)
    candidate = choose(plan, cell, lookup)
    wanted = plan.seeds[:seeds]
    ids = candidate.run_ids() if candidate else {}
    found = {seed: lookup(ids[seed]) for seed in wanted if seed in ids}
    records = {seed: record for seed, record in found.items() if record is not None}
    missing = tuple(seed for seed, record in found.items() if record is None)
    values = cell_values(cell, plan.axes)
    name = cell.name if plan.named else label(values, axes) or cell.name
    run = next(iter(cell.candidates[0].runs.values()))
    parts = [*run.task.slices, *(part for variant in run.test_variants for part in variant.slices)]
    row = Row(
        cell=cell,
        label=name,
        in_text=f'"{name}"' if plan.named else name,
        values=values,
        picked=_picked(plan, candidate),
        candidate=candidate,
        edges=tuple(path for path, end in edges(cell, candidate).items() if end) if candidate else (),
        records=records,
        missing=missing,
        status=_status(plan, cell, candidate, wanted, lookup),
        accuracy=spread(list(scores(records).values())),
        slices={part: spread(list(scores(records, part).values())) for part in parts},
        without_recall=without_recall(records, scores(records)),
        not_learned=not_learned(records.values()),
        starts=starts(records.values(), curve),
        wanted=len(wanted),
    )
    if row.lost or not row.accuracy.n:
        return row
    gains = late_gains(records.values(), curve)
    return replace(row, marks=marks(row.accuracy, row.without_recall, row.not_learned, gains, bool(row.edges)))


def column_names_of(plan: Plan) -> dict[str, str]:
    """Return {path: column name} for the axes, the keys of `select` and the learning rate."""
    return column_names([*plan.axes, *(plan.select.over if plan.select else ()), LR])


def axis_names(plan: Plan) -> dict[str, str]:
    """Return {path: column name} for the axes."""
    names = column_names_of(plan)
    return {path: names[path] for path in plan.axes}


def cell_values(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    """Return the values of the axes that have an effect in this cell, by path.

    A value is as the author of the grid wrote it; without one, it is that of the run's config.
    """
    run = next(iter(cell.candidates[0].runs.values()))
    dead = inert(run) | UNSCIENTIFIC
    settled = {path: value for path, value in leaves(run) if path not in dead}
    known = {**settled, **cell.values}
    return {path: known[path] for path in axes if path in known}


def _picked(plan: Plan, candidate: Candidate | None) -> dict[str, Any]:
    if candidate is None:
        return {}
    run = next(iter(candidate.runs.values()))
    return {LR: run.train.lr, **candidate.values}


def _status(plan: Plan, cell: Cell, candidate: Candidate | None, wanted: Sequence[int], lookup: Lookup) -> str:
    """Return the number of runs by status, e.g. `4 done, 1 diverged` or `3 done, 2 missing`.

    The text begins with `choosing:` if the cell has no chosen candidate yet.
    """
    if candidate:
        own = candidate.run_ids()
        return _counted([lookup(own[seed]) for seed in wanted if seed in own])
    ids = [candidate.run_ids() for candidate in cell.candidates]
    return "choosing: " + _counted([lookup(own[seed]) for own in ids for seed in plan.first_seeds])


def _counted(records: Sequence[StoredRun | None]) -> str:
    counts = Counter("missing" if record is None else record.status for record in records)
    order = ("done", "diverged", "oom", "failed", "pruned", "missing")
    return ", ".join(f"{counts[status]} {status}" for status in order if counts[status])

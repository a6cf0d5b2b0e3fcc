"""Make the data frames of a plan: one row for each cell (`table.csv`), and one row for each run (`runs.csv`)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.plan import Candidate, Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.stats import Spread
from mclab.report.table.accuracy import ACCURACY, BITS, score
from mclab.report.table.columns import seeds_of
from mclab.report.table.export import Column, series
from mclab.report.table.row import LR, Row
from mclab.report.table.summary import Summary, summarise
from mclab.report.text import clip

#: For each figure of a run: the column's name, a function that reads the figure from a record, the type.
FIGURES: tuple[tuple[str, Callable[[StoredRun], object], Any], ...] = (
    ("steps_done", lambda record: record.steps, pl.Int64),
    ("steps_to_99", lambda record: record.steps_to_99, pl.Int64),
    ("diverged_step", lambda record: record.diverged_step, pl.Int64),
    ("overlap", lambda record: record.overlap, pl.Float64),
    ("params", lambda record: record.params, pl.Int64),
    ("state_fixed", lambda record: record.state_fixed, pl.Int64),
    ("state_cached", lambda record: record.state_cached, pl.Int64),
    ("tokens_per_s", lambda record: record.tokens_per_s, pl.Float64),
    ("wall_s", lambda record: record.wall_s, pl.Float64),
    ("science", lambda record: record.science, pl.Int64),
    ("device", lambda record: record.fact("device"), pl.String),
    ("device_name", lambda record: record.fact("device_name"), pl.String),
    ("torch", lambda record: record.fact("torch"), pl.String),
    ("mclab", lambda record: record.fact("mclab"), pl.String),
    ("error", lambda record: record.error, pl.String),
)


def cells_frame(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> pl.DataFrame:
    """Return a frame with one row for each cell in the plan's order; the first row is the baseline.

    Keys: `name` (only in grids of changes) and a column for each axis, null if the key has no effect in the cell. Also
    the keys of `select`, `lr`, and for each key of `select` `*_edge`, true if the chosen value is at an end of its
    range. Accuracy: `n` is the number of seeds with a score (a diverged run scores 0), `status` counts the runs by
    status, `solved` is the number of seeds with 0.99 or more, `test_accuracy_lo/_hi` is the 95 % t interval, clipped to
    [0, 1]. Comparison: `diff_*` is the row minus the baseline over the seeds that both have, clipped to [-1, 1]. `p` is
    from the paired t test, Holm-adjusted over the rows, null without a test (see `stats.Difference`). `ceiling` is true
    if row and baseline are both at 0.99 or more. A row that was scored on other slices than the baseline is not
    compared: its `diff_*`, `p` and `ceiling` are null. Baseline without recall, if records hold it: `without_recall`
    and `without_recall[pairs=4]` are the accuracy of the best predictor that looks at no key, on the same test;
    `without_recall_by` is its name; `above_without_recall` is true if a one-sided paired t test over seeds shows the
    row above it. `did_not_learn` is the number of runs that are not more than 0.05 above it; `starts` is the median
    step of the first evaluation that is more than 0.05 above it. `marks` are those of `table.accuracy.marks`.
    Sequential grids: `look` is the number of seeds at the row's last look, and all columns of the row are over these
    seeds. `diff_lo/_hi` is an interval that stays valid although the looks decide the number of seeds. `p` is corrected
    by Holm and is to be compared with `share`. Further columns are `verdict`, and for an open row `seeds_to_tell` and
    `seeds_to_be_safe`. Costs: `steps_to_99` is the median over seeds, where a seed that never reached 99 % counts as
    infinity; `tokens_per_s` and `wall_s` are means over the finished runs.

    Every slice has six columns such as `test_accuracy[pairs=4]_mean`: first the task's own slices, whose mean is
    `test_accuracy`, then those that `eval.task` adds. Further metrics have the same columns: `test_token_accuracy` if
    an answer has several tokens, `test_value_accuracy` and `test_values_found` if it has several values, and
    `test_bits` (per byte) if the task is text.
    """
    return cells_of(summarise(plan, lookup, curve))


def cells_of(summary: Summary) -> pl.DataFrame:
    """Return the frame of `cells_frame` for a summary."""
    return pl.DataFrame([series(*column) for column in _columns(summary)])


def _columns(summary: Summary) -> Iterator[Column]:
    rows = summary.rows
    if summary.plan.named:
        yield "name", pl.String, [row.cell.name for row in rows]
    for path in summary.plan.axes:
        yield summary.names[path], None, [row.values.get(path) for row in rows]
    yield "n", pl.Int64, [row.accuracy.n for row in rows]
    yield "status", pl.String, [row.status for row in rows]
    yield "solved", pl.Int64, [row.solved for row in rows]
    yield from _picked(summary)
    yield from _spread("test_accuracy", [row.accuracy for row in rows])
    for part in summary.slices:
        yield from _spread(f"test_accuracy[{part}]", [row.slices.get(part, Spread()) for row in rows])
    for metric in summary.metrics:
        yield from _spread(f"test_{metric}", [row.spread_of(metric) for row in rows])
        for part in summary.slices:
            found = [row.spread_of(metric, part) if part in row.slices else Spread() for row in rows]
            yield from _spread(f"test_{metric}[{part}]", found)
    yield from _difference(rows)
    if summary.looks:
        yield from _look_results(summary)
    yield "params", pl.Int64, [row.params for row in rows]
    yield "state_fixed", pl.Int64, [row.state_fixed for row in rows]
    yield "state_cached", pl.Int64, [row.state_cached for row in rows]
    yield "steps_to_99", pl.Float64, [row.steps_to_99() for row in rows]
    yield "tokens_per_s", pl.Float64, [row.tokens_per_s for row in rows]
    yield "wall_s", pl.Float64, [row.wall_s for row in rows]
    if summary.baselined:
        yield from _without_recall(summary)


def _look_results(summary: Summary) -> Iterator[Column]:
    results, seeds = [row.look_result for row in summary.rows], [seeds_of(row, summary) for row in summary.rows]
    yield "look", pl.Int64, [result.n if result else None for result in results]
    yield "share", pl.Float64, [result.share if result else None for result in results]
    yield "verdict", pl.String, [result.state if result else None for result in results]
    yield "seeds_to_tell", pl.Int64, [about for about, _ in seeds]
    yield "seeds_to_be_safe", pl.Int64, [safe for _, safe in seeds]


def _without_recall(summary: Summary) -> Iterator[Column]:
    found = [row.without_recall for row in summary.rows]
    yield "without_recall", pl.Float64, [each and each.accuracy() for each in found]
    yield "without_recall_by", pl.String, [each and each.best[ALL].name for each in found]
    yield "above_without_recall", pl.Boolean, [each and each.above for each in found]
    yield "did_not_learn", pl.Int64, [row.not_learned for row in summary.rows]
    yield "starts", pl.Float64, [row.starts for row in summary.rows]
    yield "marks", pl.String, [", ".join(row.marks) for row in summary.rows]
    for part in summary.slices:
        yield f"without_recall[{part}]", pl.Float64, [each and each.accuracy(part) for each in found]


def _picked(summary: Summary) -> Iterator[Column]:
    """Yield a column for each key of `select`, each followed by its `_edge` column, and one for the learning rate.

    The learning rate has no second column if it is an axis or a key of `select`.
    """
    for path in summary.selected:
        name = summary.names[path]
        yield name, None, [row.picked.get(path) for row in summary.rows]
        yield f"{name}_edge", pl.Boolean, [path in row.edges if row.candidate else None for row in summary.rows]
    if LR not in (*summary.plan.axes, *summary.selected):
        yield summary.names[LR], pl.Float64, [row.picked.get(LR) for row in summary.rows]


def _spread(name: str, spreads: Sequence[Spread]) -> Iterator[Column]:
    for part in ("mean", "std", "lo", "hi", "min", "max"):
        values = [getattr(spread, part) for spread in spreads]
        clipped = part in ("lo", "hi") and not name.startswith(f"test_{BITS}")
        yield f"{name}_{part}", pl.Float64, [clip(value, 0.0) for value in values] if clipped else values


def _difference(rows: Sequence[Row]) -> Iterator[Column]:
    for part in ("mean", "lo", "hi"):
        values = [getattr(row.difference, part) if row.difference else None for row in rows]
        yield f"diff_{part}", pl.Float64, [clip(value, -1.0) for value in values]
    yield "p", pl.Float64, [row.p for row in rows]
    yield "ceiling", pl.Boolean, [row.ceiling for row in rows]


@dataclass(frozen=True)
class _Run:
    row: Row
    candidate: Candidate
    seed: int
    record: StoredRun

    def value(self, path: str) -> Any:
        """Return the value that the plan gives to a key; `None` if the key has no effect in this cell."""
        if path in self.row.values:
            return self.row.values[path]
        return {LR: self.candidate.runs[self.seed].train.lr, **self.candidate.values}.get(path)

    def accuracy(self, part: str, metric: str = ACCURACY) -> float | None:
        return score(self.record, part, metric) if part == ALL or part in self.row.slices else None

    def metric(self, split: str, part: str, metric: str) -> float | None:
        scores = self.record.test if split == "test" else self.record.valid
        found = scores[part].metrics.get(metric) if part in scores else None
        return None if found is None else float(found)


def runs_frame(plan: Plan, lookup: Lookup) -> pl.DataFrame:
    """Return a frame with one row for each stored run, ordered by cell, candidate and seed as in the plan.

    The columns are the keys, `chosen` (true if the cell chose this candidate), accuracy and loss on test and valid, on
    all slices and on each, cost, machine, error. `test_accuracy` of a diverged run is 0, as in the table. Slices that
    `eval.task` adds have no columns for valid. `test_token_accuracy` is present if an answer has several tokens,
    `test_value_accuracy` and `test_values_found` if it has several values.
    """
    return runs_of(summarise(plan, lookup), lookup)


def runs_of(summary: Summary, lookup: Lookup) -> pl.DataFrame:
    """Return the frame of `runs_frame` for a summary."""
    return pl.DataFrame([series(*column) for column in _run_columns(summary, list(_stored(summary, lookup)))])


def _stored(summary: Summary, lookup: Lookup) -> Iterator[_Run]:
    for row in summary.rows:
        for candidate in row.cell.candidates:
            for seed, run_id in candidate.run_ids().items():
                record = lookup(run_id)
                if record is not None:
                    yield _Run(row, candidate, seed, record)


def _run_columns(summary: Summary, runs: list[_Run]) -> Iterator[Column]:
    yield "run_id", pl.String, [run.record.run_id for run in runs]
    if summary.plan.named:
        yield "name", pl.String, [run.row.cell.name for run in runs]
    for path, name in summary.names.items():
        yield name, None, [run.value(path) for run in runs]
    yield "seed", pl.Int64, [run.seed for run in runs]
    yield "chosen", pl.Boolean, [run.candidate == run.row.candidate for run in runs]
    yield "status", pl.String, [run.record.status for run in runs]
    extras = summary.extras
    for ending, part in [("", ALL), *((f"[{part}]", part) for part in summary.slices)]:
        yield f"test_accuracy{ending}", pl.Float64, [run.accuracy(part) for run in runs]
        for metric in summary.metrics:
            yield f"test_{metric}{ending}", pl.Float64, [run.accuracy(part, metric) for run in runs]
        valid = () if part in extras else (("valid", "accuracy"), ("valid", "loss"))
        for split, metric in (("test", "loss"), *valid):
            yield f"{split}_{metric}{ending}", pl.Float64, [run.metric(split, part, metric) for run in runs]
    for name, figure, dtype in FIGURES:
        yield name, dtype, [figure(run.record) for run in runs]

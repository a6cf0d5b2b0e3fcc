"""The frame of runs: every stored run of a plan, for notebooks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.plan import Candidate, Plan
from mclab.plan.select import Lookup
from mclab.report.table.frames import Column, series
from mclab.report.table.row import ACCURACY, Row, score
from mclab.report.table.summary import LR, Summary, summarise

#: Column, figure of the record, type.
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


@dataclass(frozen=True)
class _Run:
    row: Row
    candidate: Candidate
    seed: int
    record: StoredRun

    def value(self, path: str) -> Any:
        """What the plan says of a key; `None` where it means nothing in this cell."""
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
    """One row per stored run: cells in the plan's order, then candidates, then seeds.

    Beside the keys: `chosen` (the cell reports this candidate), accuracy and loss on test and valid, on all and on each
    slice, cost, machine, error. `test_accuracy` of a diverged run is 0, as in the table of cells. The slices that
    `eval.task` adds have no valid, and `test_token_accuracy` is there where an answer is several tokens,
    `test_value_accuracy` and `test_values_found` where it is several values.
    """
    return runs_of(summarise(plan, lookup), lookup)


def runs_of(summary: Summary, lookup: Lookup) -> pl.DataFrame:
    """`runs_frame` of a summary."""
    return pl.DataFrame([series(*column) for column in _columns(summary, list(_stored(summary, lookup)))])


def _stored(summary: Summary, lookup: Lookup) -> Iterator[_Run]:
    for row in summary.rows:
        for candidate in row.cell.candidates:
            for seed, run_id in candidate.run_ids().items():
                record = lookup(run_id)
                if record is not None:
                    yield _Run(row, candidate, seed, record)


def _columns(summary: Summary, runs: list[_Run]) -> Iterator[Column]:
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

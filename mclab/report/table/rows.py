"""The rows of a plan, each from its cell's records, and the baseline that each is compared with."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from mclab.config.run import UNSCIENTIFIC, RunConfig, inert
from mclab.config.stored import StoredRun, clashing
from mclab.config.strict import leaves
from mclab.plan.plan import CHANGE, Candidate, Cell, Plan
from mclab.plan.select import Curve, Lookup, choose, edges
from mclab.report.names import column_names, label
from mclab.report.stats import SAME, Difference, paired, spread
from mclab.report.table.learned import marks, not_learned, starts
from mclab.report.table.recall import without_recall
from mclab.report.table.row import SOLVED, Row, same_function, scores

LR = "train.lr"


def row_of(plan: Plan, cell: Cell, lookup: Lookup, curve: Curve | None = None, seeds: int | None = None) -> Row:
    """The row of a cell, over the first `seeds` of the plan's seeds, by default all; empty where nothing is stored."""
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
    row = Row(
        cell=cell,
        label=name,
        told=f'"{name}"' if plan.named else name,
        values=values,
        picked=_picked(plan, candidate),
        candidate=candidate,
        edges=tuple(path for path, end in edges(cell, candidate).items() if end) if candidate else (),
        records=records,
        missing=missing,
        status=_status(plan, cell, candidate, wanted, lookup),
        accuracy=spread(list(scores(records).values())),
        slices={part: spread(list(scores(records, part).values())) for part in _parts(run)},
        without_recall=without_recall(records, scores(records)),
        not_learned=not_learned(records.values()),
        starts=starts(records.values(), curve),
        wanted=len(wanted),
    )
    return replace(row, marks=marks(row, curve))


def column_names_of(plan: Plan) -> dict[str, str]:
    """The column of each varied or selected key, and of the learning rate, by path."""
    return column_names([*plan.axes, *(plan.select.over if plan.select else ()), LR])


def axis_names(plan: Plan) -> dict[str, str]:
    """The columns of the varied keys."""
    names = column_names_of(plan)
    return {path: names[path] for path in plan.axes}


def _parts(run: RunConfig) -> list[str]:
    """Every slice that the run is tested on."""
    return [*run.task.slices, *(part for exam in run.exams for part in exam.slices)]


def cell_values(cell: Cell, axes: Sequence[str]) -> dict[str, Any]:
    """The varied keys that mean something in this cell: as its author wrote them, else as they stand in its run."""
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
    """`5 done`, `4 done, 1 diverged`, `3 done, 2 missing`; behind `choosing:` while no candidate is chosen."""
    if candidate:
        own = candidate.run_ids()
        return _counted([lookup(own[seed]) for seed in wanted if seed in own])
    ids = [candidate.run_ids() for candidate in cell.candidates]
    return "choosing: " + _counted([lookup(own[seed]) for own in ids for seed in plan.first_seeds])


def _counted(records: Sequence[StoredRun | None]) -> str:
    counts = Counter("missing" if record is None else record.status for record in records)
    order = ("done", "diverged", "oom", "failed", "pruned", "missing")
    return ", ".join(f"{counts[status]} {status}" for status in order if counts[status])


def difference_of(row: Row, baseline: Row) -> Difference:
    """The row less its baseline, paired by seed."""
    gap = paired(scores(row.records), scores(baseline.records))
    if row.lost and baseline.lost:
        return Difference(gap.n, "lost")
    if gap.kind != "same":
        return gap
    both = scores(row.records).keys() & scores(baseline.records).keys()
    equal = all(same_function(row.records[seed], baseline.records[seed]) for seed in both)
    return replace(gap, kind="identical") if equal else gap


def unmended(row: Row, base: Row) -> str:
    """What keeps a row without a verdict: its own marks, or else its baseline's; nothing where it may have one."""
    if row.marks or not base.marks:
        return ", ".join(row.marks)
    return f"the baseline: {', '.join(base.marks)}"


def is_high(row: Row) -> bool:
    """True at the ceiling."""
    return row.accuracy.mean is not None and row.accuracy.mean >= SOLVED - SAME


def baselines_of(rows: Sequence[Row]) -> list[int | None]:
    """The place of each row's baseline: the first row; with crossed changes the first change beside it, if any."""
    first = rows[0].values.get(CHANGE)
    own = {_beside(row): place for place, row in reversed(list(enumerate(rows))) if row.values.get(CHANGE) == first}
    return [own.get(_beside(row)) for row in rows]


def _beside(row: Row) -> str:
    """What rows that are compared with each other have in common: the other values beside a crossed change."""
    if CHANGE not in row.values:
        return ""
    return json.dumps({path: value for path, value in row.values.items() if path != CHANGE}, sort_keys=True)


def apart(row: Row, baseline: Row) -> Literal["slices", "versions"] | None:
    """Why a row is not compared: a mean over other slices, or of another formula, is another quantity."""
    if set(row.own) != set(baseline.own):
        return "slices"
    return "versions" if clashing([*row.records.values(), *baseline.records.values()]) else None

"""A plan and its records, summed up: what every table, sentence and plot is drawn from."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mclab.config.run import UNSCIENTIFIC, RunConfig, inert
from mclab.config.stored import StoredRun, clashing
from mclab.config.strict import leaves
from mclab.plan.plan import CHANGE, Candidate, Cell, Plan
from mclab.plan.select import Lookup, choose, edges
from mclab.report.names import column_names, label, natural, value_text
from mclab.report.recall import without_recall
from mclab.report.row import SOLVED, TOKENS, VALUES, Row, same_function, scores
from mclab.report.stats import SAME, Difference, holm, paired, spread

LR = "train.lr"
#: Letters of a name that a sentence can bear several times.
SHORT = 24


@dataclass(frozen=True)
class Summary:
    """All rows in the plan's order. `names`: the column of each key by path.

    `slices`: the union over the cells, the tasks' own first, then those that `eval.task` adds.
    """

    plan: Plan
    rows: tuple[Row, ...]
    slices: tuple[str, ...]
    names: dict[str, str]

    @property
    def selected(self) -> tuple[str, ...]:
        """Paths of the selected keys."""
        return self.plan.select.over if self.plan.select else ()

    @property
    def baseline(self) -> str:
        """The baseline in a sentence: the first row by its own name where that is short, else the first change."""
        if self.crossed:
            return f"{value_text(self.rows[0].values[CHANGE])} there"
        told = self.rows[0].told
        return told if len(told) <= SHORT else "the baseline"

    @property
    def crossed(self) -> bool:
        """True where changes are crossed with other axes, so that each of their cells has a baseline of its own."""
        return CHANGE in self.plan.axes

    @property
    def has_slices(self) -> bool:
        """True where some cell is scored on more than one slice, so that "all" hides something."""
        return any(len(row.slices) > 1 for row in self.rows)

    @property
    def extras(self) -> tuple[str, ...]:
        """The slices that are no task's own: `eval.task` adds them, and they are in no mean."""
        own = {part for row in self.rows for part in row.own}
        return tuple(part for part in self.slices if part not in own)

    @property
    def several_values(self) -> bool:
        """True where the share of single values says more than accuracy, in some cell."""
        return any(row.several_values for row in self.rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics beside accuracy that say more than it in some cell."""
        return (*[TOKENS] * self.long_answers, *[VALUES] * self.several_values)

    @property
    def unmeasured(self) -> bool:
        """True where there are scores and all are from before baselines without recall were stored."""
        return not self.baselined and any(row.accuracy.n for row in self.rows)

    @property
    def baselined(self) -> list[Row]:
        """The rows that have a baseline without recall."""
        return [row for row in self.rows if row.without_recall]

    @property
    def long_answers(self) -> bool:
        """True where token accuracy says more than accuracy, in some cell."""
        return any(row.long_answers for row in self.rows)


def summarise(plan: Plan, lookup: Lookup) -> Summary:
    """Sum up every cell of the plan from the records that `lookup` finds; cells without any stay, empty."""
    names = column_names([*plan.axes, *(plan.select.over if plan.select else ()), LR])
    axes = {path: names[path] for path in plan.axes}
    rows = [_row(plan, cell, axes, lookup) for cell in plan.cells]
    own = {part for row in rows for part in row.own}
    parts = sorted({part for row in rows for part in row.slices}, key=lambda part: (part not in own, natural(part)))
    return Summary(plan, tuple(_compared(rows)), tuple(parts), names)


def _row(plan: Plan, cell: Cell, axes: Mapping[str, str], lookup: Lookup) -> Row:
    candidate = choose(plan, cell, lookup)
    found = {seed: lookup(run) for seed, run in candidate.run_ids().items()} if candidate else {}
    records = {seed: record for seed, record in found.items() if record is not None}
    missing = tuple(seed for seed, record in found.items() if record is None)
    values = cell_values(cell, plan.axes)
    name = cell.name if plan.named else label(values, axes) or cell.name
    run = next(iter(cell.candidates[0].runs.values()))
    return Row(
        cell=cell,
        label=name,
        told=f'"{name}"' if plan.named else name,
        values=values,
        picked=_picked(plan, candidate),
        candidate=candidate,
        edges=tuple(path for path, end in edges(cell, candidate).items() if end) if candidate else (),
        records=records,
        missing=missing,
        status=_status(plan, cell, candidate, lookup),
        accuracy=spread(list(scores(records).values())),
        slices={part: spread(list(scores(records, part).values())) for part in _parts(run)},
        without_recall=without_recall(records, scores(records)),
    )


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


def _status(plan: Plan, cell: Cell, candidate: Candidate | None, lookup: Lookup) -> str:
    """`5 done`, `4 done, 1 diverged`, `3 done, 2 missing`; behind `choosing:` while no candidate is chosen."""
    if candidate:
        return _counted([lookup(run) for run in candidate.run_ids().values()])
    first = plan.seeds[: plan.select.seeds] if plan.select else plan.seeds
    ids = [candidate.run_ids() for candidate in cell.candidates]
    return "choosing: " + _counted([lookup(own[seed]) for own in ids for seed in first])


def _counted(records: Sequence[StoredRun | None]) -> str:
    counts = Counter("missing" if record is None else record.status for record in records)
    order = ("done", "diverged", "oom", "failed", "pruned", "missing")
    return ", ".join(f"{counts[status]} {status}" for status in order if counts[status])


def _compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with their differences to their baseline, paired by seed; Holm over all that have its slices."""
    baselines = _baselines(rows)
    others = [(place, base) for place, base in enumerate(baselines) if rows[place] is not base]
    apart = {place: base and _apart(rows[place], base) for place, base in others}
    gaps = {place: _difference(rows[place], base) for place, base in others if base and not apart[place]}
    adjusted = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    compared = list(rows)
    for place, base in others:
        row, gap = rows[place], gaps.get(place)
        if base is None or gap is None:
            compared[place] = replace(row, difference=Difference(0, apart[place] or "alone"))
        else:
            compared[place] = replace(row, difference=gap, p=adjusted[place], ceiling=_high(row) and _high(base))
    return compared


def _baselines(rows: Sequence[Row]) -> list[Row | None]:
    """The baseline of each row: the first row; with crossed changes the first change beside it, if there is one."""
    first = rows[0].values.get(CHANGE)
    own = {_beside(row): row for row in reversed(rows) if row.values.get(CHANGE) == first}
    return [own.get(_beside(row)) for row in rows]


def _beside(row: Row) -> str:
    """What rows that are compared with each other have in common: the other values beside a crossed change."""
    if CHANGE not in row.values:
        return ""
    return json.dumps({path: value for path, value in row.values.items() if path != CHANGE}, sort_keys=True)


def _apart(row: Row, baseline: Row) -> Literal["slices", "versions"] | None:
    """Why a row is not compared: a mean over other slices, or of another formula, is another quantity."""
    if set(row.own) != set(baseline.own):
        return "slices"
    return "versions" if clashing([*row.records.values(), *baseline.records.values()]) else None


def _difference(row: Row, baseline: Row) -> Difference:
    gap = paired(scores(row.records), scores(baseline.records))
    if row.lost and baseline.lost:
        return Difference(gap.n, "lost")
    if gap.kind != "same":
        return gap
    both = scores(row.records).keys() & scores(baseline.records).keys()
    equal = all(same_function(row.records[seed], baseline.records[seed]) for seed in both)
    return replace(gap, kind="identical") if equal else gap


def _high(row: Row) -> bool:
    return row.accuracy.mean is not None and row.accuracy.mean >= SOLVED - SAME

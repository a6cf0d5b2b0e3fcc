"""Compare a grid's results with a published table: our value of each entry, and which differences agree with the paper.

A row is a change of the grid. A column is a mean over the cells and slices that the grid's `paper` block names. An
entry (the result of a row in a column) has one number for each seed. Entries of a column are compared by a paired t
test over seeds, with Holm's adjustment over all comparisons in the column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from mclab.config.params import multiply_adds
from mclab.config.stored import StoredRun, clashing
from mclab.config.strict import leaves
from mclab.plan.conditions import Condition
from mclab.plan.paper import COSTS, RISING, Column, Paper, PaperRow, Word
from mclab.plan.plan import CHANGE, Plan, row_name
from mclab.plan.select import Curve, Lookup
from mclab.report.sequential import Gap, seeds_to_tell
from mclab.report.stats import ALPHA, SAME, Difference, Spread, holm, paired, spread
from mclab.report.table.accuracy import AT_CHANCE, EDGE, FEW_STARTED, IMPROVING, SOLVED, above, score
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary, summarise
from mclab.report.text import value_text

#: The verdicts. "agrees", "contradicts": our difference is significant, and its direction is the published one or the
#: opposite. "even": the interval is within the margin ("agrees" if it is published as even). "open": none of these.
#: "better", "worse": significant, but nothing is published. "none": no result or no test; `Held.reason` says why.
Verdict = Literal["agrees", "contradicts", "even", "open", "better", "worse", "none"]
#: Marks because of which an entry gets no verdict, in addition to the marks of rows (`MENDING`).
NO_RESULT, DIVERGED = "no result", "diverged"
MENDING = (AT_CHANCE, FEW_STARTED, IMPROVING, EDGE)
#: The direction of a difference: 1 is better, -1 worse, 0 even.
Side = Literal[-1, 0, 1]
_SIDES: dict[Word, Side] = {"better": 1, "even": 0, "worse": -1}


@dataclass(frozen=True)
class Entry:
    """The result of a row in a column. `scores` are by seed; `of` names the cells and slices that are averaged.

    `mark` says why the entry gets no verdict, e.g. at chance, still improving, learning rate at an edge, diverged.
    """

    scores: Mapping[int, float]
    spread: Spread
    paper: float | Word | None
    of: frozenset[str] = frozenset()
    records: tuple[StoredRun, ...] = ()
    mark: str | None = None

    @property
    def high(self) -> bool:
        """True if the mean is at the ceiling of an accuracy (0.99 or more)."""
        return self.spread.mean is not None and self.spread.mean >= SOLVED - SAME


@dataclass(frozen=True)
class Held:
    """The comparison of `row` with the row `against` in one column, in our runs and in the paper.

    `gap` is our difference over the seeds that both rows have; `p` is Holm-adjusted over the column. `paper` is the
    difference of the published figures, `side` its direction. For an open comparison, `seeds` is the number of seeds
    that would make the difference significant with a power of 80 %, and a number on the safe side.
    """

    row: str
    against: str
    column: Column
    gap: Difference
    p: float | None
    paper: float | None
    side: Side | None
    verdict: Verdict
    reason: str | None = None
    seeds: tuple[int | None, int | None] | None = None
    ceiling: bool = False


@dataclass(frozen=True)
class Reproduction:
    """The published table and our results. `rows` and `columns` are those of the paper that are also in this grid."""

    summary: Summary
    paper: Paper
    rows: tuple[PaperRow, ...]
    columns: tuple[Column, ...]
    entries: Mapping[tuple[str, str], Entry]
    held: tuple[Held, ...]

    @property
    def absent(self) -> list[str]:
        """The names of the paper's columns for which this grid has no cell."""
        return [column.name for column in self.paper.columns if column not in self.columns]


def reproduction(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> Reproduction:
    """Compare the stored runs of a plan with the plan's `paper` block. `curve` is as for `summarise`."""
    assert plan.paper is not None, "a plan with a paper block"
    summary = summarise(plan, lookup, curve)
    named: dict[str, list[Row]] = {}
    for row in summary.rows:
        named.setdefault(row_name(row.cell), []).append(row)
    rows = tuple(row for row in plan.paper.rows if row.name in named)
    columns = tuple(c for c in plan.paper.columns if any(_parts(row, c) for row in summary.rows))
    entries = {
        (row.name, column.name): _entry(named[row.name], column, row.figures[plan.paper.columns.index(column)])
        for row in rows
        for column in columns
    }
    held = tuple(each for column in columns for each in _held(rows, column, entries))
    return Reproduction(summary, plan.paper, rows, columns, entries, held)


def _parts(row: Row, column: Column) -> list[str]:
    """Return the slices of a cell that belong to a column.

    These are slices of the cell's task that match; without a match, those of `eval.task`.
    """
    rule = Condition(column.where, "")
    tested = row.run.tested
    fits = [
        part for part, task in tested.items() if rule.holds(dict(leaves(row.run.model_copy(update={"task": task}))))
    ]
    return [part for part in fits if part in row.own] or fits


def _entry(rows: Sequence[Row], column: Column, paper: float | Word | None) -> Entry:
    found = [(row, parts) for row in rows if (parts := _parts(row, column))]
    cells = [_scores(row, parts, column) for row, parts in found]
    shared = set[int]().union(*cells).intersection(*cells)
    means = {seed: fmean(cell[seed] for cell in cells) for seed in sorted(shared)}
    of = frozenset(f"{_other_values(row)} {','.join(parts)}" for row, parts in found)
    records = tuple(record for row, _ in found for record in row.records.values())
    return Entry(means, spread(list(means.values())), paper, of, records, _mark(found, column, bool(means)))


def _other_values(row: Row) -> str:
    """Return as text the values on the axes that are crossed with the changes; empty if none are crossed.

    Cells of different rows are over the same tasks if these texts are equal.
    """
    crossed = CHANGE in row.values
    return value_text({path: value for path, value in row.values.items() if path != CHANGE} if crossed else {})


def _scores(row: Row, parts: Sequence[str], column: Column) -> dict[int, float]:
    known = {seed: _value(row, record, parts, column) for seed, record in row.records.items()}
    return {seed: value for seed, value in known.items() if value is not None}


def _value(row: Row, record: StoredRun, parts: Sequence[str], column: Column) -> float | None:
    """Return a run's figure for a column, averaged over the slices `parts`; `None` if the run has none."""
    if column.metric == "tokens_per_s":
        return record.tokens_per_s if record.status == "done" else None
    if column.metric == "mmacs":
        counted = multiply_adds(row.run)
        return None if counted is None else counted / 1e6
    return _mean([score(record, part, column.metric) for part in parts])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _mark(found: Sequence[tuple[Row, Sequence[str]]], column: Column, scored: bool) -> str | None:
    """Return the marks of an entry, the most serious first, each with the tasks that it concerns; `None` if none."""
    if not found or not scored:
        return NO_RESULT
    if column.metric in COSTS:
        return None
    if lost := [row for row, _ in found if row.lost]:
        return f"{DIVERGED}{_where(lost, found)}"
    own = [(row, _marks(row, parts)) for row, parts in found]
    told = (
        f"{mark}{_where(rows, found)}" for mark in MENDING if (rows := [row for row, marks in own if mark in marks])
    )
    return "; ".join(told) or None


def _marks(row: Row, parts: Sequence[str]) -> list[str]:
    """Return the row's marks for a column over the slices `parts`.

    If `parts` are not exactly the task's own slices, "at chance" is decided anew: does the row exceed the best
    predictors without recall on `parts`?
    """
    if set(parts) == set(row.own):
        return list(row.marks)
    late = [] if above(row.records, parts) else [AT_CHANCE]
    return [*late, *(mark for mark in row.marks if mark in (IMPROVING, EDGE))]


def _where(rows: Sequence[Row], found: Sequence[tuple[Row, Sequence[str]]]) -> str:
    """Return the names of the tasks of `rows` after a colon; an empty text if `rows` are all rows of `found`."""
    if len(rows) == len(found):
        return ""
    names = dict.fromkeys(str(getattr(row.run.task, "preset", row.run.task.name)) for row in rows)
    return f": {', '.join(names)}"


def _held(rows: Sequence[PaperRow], column: Column, entries: Mapping[tuple[str, str], Entry]) -> list[Held]:
    """Return all comparisons of a column. Holm's adjustment also counts those without a verdict."""
    if column.metric in COSTS:
        return []
    known = {row.name for row in rows}
    pairs = [(row.name, other) for row in rows for other in row.against if other in known]
    sides = [(entries[row, column.name], entries[other, column.name]) for row, other in pairs]
    reasons = [_reason(*pair) for pair in sides]
    gaps = [paired(one.scores, other.scores) for one, other in sides]
    ps = holm([gap.p if reason is None else None for gap, reason in zip(gaps, reasons, strict=True)])
    return [
        _judged(names, column, pair, gap, p, reason, len(pairs))
        for names, pair, gap, p, reason in zip(pairs, sides, gaps, ps, reasons, strict=True)
    ]


def _reason(one: Entry, other: Entry) -> str | None:
    """Return why two entries are not compared; `None` if they are."""
    if one.mark:
        return one.mark
    if other.mark:
        return f"the other row: {other.mark}"
    if one.of != other.of:
        return "a mean over other cells"
    return "other versions of a formula" if clashing([*one.records, *other.records]) else None


def _judged(
    names: tuple[str, str],
    column: Column,
    pair: tuple[Entry, Entry],
    gap: Difference,
    p: float | None,
    reason: str | None,
    count: int,
) -> Held:
    paper, side = _published(column, *(entry.paper for entry in pair))
    verdict, why = ("none", reason) if reason else _verdict(column, gap, p, side)
    seeds = None
    if verdict == "open" and gap.std and gap.p is not None and gap.mean is not None:
        seen = Gap(gap.n, gap.mean, gap.std, gap.p, gap.lo or 0.0, gap.hi or 0.0)
        seeds = seeds_to_tell(seen, ALPHA, count)
    high = column.metric in RISING and all(entry.high for entry in pair)
    return Held(*names, column, gap, p, paper, side, verdict, why, seeds, high)


def _published(
    column: Column, one: float | Word | None, other: float | Word | None
) -> tuple[float | None, Side | None]:
    """Return the published difference and its direction: 1 if `one` is better, 0 if even, -1 if worse."""
    if isinstance(one, str):
        return None, _SIDES[one]
    if one is None or other is None or isinstance(other, str):
        return None, None
    gap = one - other
    if abs(gap) <= SAME:
        return 0.0, 0
    return gap, 1 if (gap > 0) == (column.better == "up") else -1


def _verdict(column: Column, gap: Difference, p: float | None, side: Side | None) -> tuple[Verdict, str | None]:
    """Return the verdict and, if it is "none", the reason.

    A significant difference counts as a difference even if it is within the margin.
    """
    if gap.mean is None:
        return "none", "no seed in common"
    if gap.kind == "few":
        return "none", f"no test: {gap.n} seed{'s' * (gap.n > 1)} in common"
    if p is not None and p < ALPHA:
        ours = 1 if (gap.mean > 0) == (column.metric in RISING) else -1
        if side is None:
            return ("better" if ours == 1 else "worse"), None
        return ("agrees" if ours == side else "contradicts"), None
    if _within(gap, column.margin):
        return ("agrees" if side == 0 else "even"), None
    if gap.kind == "constant":
        return "none", f"no test: the difference is equal on each of {gap.n} seeds"
    return "open", None


def _within(gap: Difference, margin: float | None) -> bool:
    """Return whether the 95 % interval of the difference is within ± `margin`.

    If the difference is 0 on each of at least three seeds, the result is true for any margin.
    """
    if gap.kind == "same":
        return gap.n > 2
    if margin is None:
        return False
    ends = (gap.mean, gap.mean) if gap.kind == "constant" else (gap.lo, gap.hi)
    return all(end is not None and abs(end) <= margin for end in ends)

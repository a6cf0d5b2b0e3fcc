"""A plan and its records, summed up: what every table, sentence and plot is drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mclab.plan.plan import CHANGE, Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.names import natural, value_text
from mclab.report.sequential import Standing
from mclab.report.stats import Difference, holm
from mclab.report.table.planned_looks import Course, course
from mclab.report.table.row import BITS, FOUND, TOKENS, VALUES, Row
from mclab.report.table.rows import LR, apart, baselines_of, column_names_of, difference_of, is_high, row_of, unmended

__all__ = ["LR", "SHORT", "Summary", "summarise"]

#: Letters of a name that a sentence can bear several times.
SHORT = 24


@dataclass(frozen=True)
class Summary:
    """All rows in the plan's order. `names`: the column of each key by path.

    `slices`: the union over the cells, the tasks' own first, then those that `eval.task` adds. `way`: how far a
    sequential grid is.
    """

    plan: Plan
    rows: tuple[Row, ...]
    slices: tuple[str, ...]
    names: dict[str, str]
    way: Course | None = None

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
        bits, free = any(row.bytewise for row in self.rows), any(row.free_answers for row in self.rows)
        return (*[TOKENS] * self.long_answers, *[VALUES] * self.several_values, *[FOUND] * free, *[BITS] * bits)

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


def summarise(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> Summary:
    """Sum up every cell of the plan from the records that `lookup` finds; cells without any stay, empty.

    `curve` finds the looks of a run by its id; without it nothing is said of rows that still improve. The rows of a
    sequential grid are over the seeds of the last look that they took part in.
    """
    way = course(plan, lookup, curve) if plan.until else None
    rows = [
        row_of(plan, cell, lookup, curve, way.shown[place] if way else None) for place, cell in enumerate(plan.cells)
    ]
    own = {part for row in rows for part in row.own}
    parts = sorted({part for row in rows for part in row.slices}, key=lambda part: (part not in own, natural(part)))
    compared = _sequential(rows, way) if way else _compared(rows)
    return Summary(plan, tuple(compared), tuple(parts), column_names_of(plan), way)


def _compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with their differences to their baseline, paired by seed; Holm over all that have its slices."""
    others = {place: base for place, base in enumerate(baselines_of(rows)) if place != base}
    aside = {place: base is not None and apart(rows[place], rows[base]) for place, base in others.items()}
    gaps = {
        place: difference_of(rows[place], rows[base])
        for place, base in others.items()
        if base is not None and not aside[place]
    }
    adjusted = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    compared = list(rows)
    for place, base in others.items():
        row, gap = rows[place], gaps.get(place)
        if base is None or gap is None:
            compared[place] = replace(row, difference=Difference(0, aside[place] or "alone"))
        else:
            high = is_high(row) and is_high(rows[base])
            why = unmended(row, rows[base])
            compared[place] = replace(row, difference=gap, p=adjusted[place], ceiling=high, unmended=why)
    return compared


def _sequential(rows: Sequence[Row], way: Course) -> list[Row]:
    """The rows with their differences at the last look that each took part in, and how they stand after it."""
    compared = list(rows)
    for place, base in enumerate(baselines_of(rows)):
        if place == base:
            continue
        row, stand = rows[place], way.standings[place]
        high = base is not None and stand.gap is not None and is_high(row) and is_high(rows[base])
        why = stand.why if stand.state == "unmended" else ""
        found = replace(row, difference=_at_look(stand), p=stand.p, ceiling=high)
        compared[place] = replace(found, standing=stand, unmended=why)
    return compared


def _at_look(stand: Standing) -> Difference:
    if stand.kind is not None or stand.gap is None:
        return Difference(stand.n, stand.kind or "waiting", mean=0.0 if stand.kind == "identical" else None)
    gap = stand.gap
    return Difference(gap.n, "tested", gap.mean, gap.std, gap.lo, gap.hi, gap.p)

"""Summarise a plan and its records. Every table, sentence and plot is made from the summary."""

from dataclasses import dataclass, replace

from mclab.plan.plan import CHANGE, Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.table.accuracy import BITS, FOUND, TOKENS, VALUES
from mclab.report.table.baseline import compared
from mclab.report.table.planned_looks import LooksSoFar, compared_at_looks, looks_so_far
from mclab.report.table.row import Row, column_names_of, row_of
from mclab.report.text import natural, value_text

#: The most rows in a table at a terminal, and in a plot that draws each row.
MOST_ROWS = 50
#: The most letters of a baseline's name in a sentence; a longer name is replaced by "the baseline".
SHORT = 24


@dataclass(frozen=True)
class Summary:
    """All rows in the plan's order.

    `slices` are the slices of all cells, the tasks' own first, then those that `eval.task` adds. `names` holds the
    column name of each key by path. `looks` is the progress of a sequential grid.
    """

    plan: Plan
    rows: tuple[Row, ...]
    slices: tuple[str, ...]
    names: dict[str, str]
    looks: LooksSoFar | None = None

    @property
    def selected(self) -> tuple[str, ...]:
        """The paths of the keys of `select`."""
        return self.plan.select.over if self.plan.select else ()

    @property
    def baseline(self) -> str:
        """The name of the baseline in a sentence: the name of the first row, or "the baseline" if that is long.

        With crossed changes it is the name of the first change.
        """
        if self.crossed:
            return f"{value_text(self.rows[0].values[CHANGE])} there"
        told = self.rows[0].in_text
        return told if len(told) <= SHORT else "the baseline"

    @property
    def crossed(self) -> bool:
        """True if changes are crossed with other axes; then each combination of other values has its own baseline."""
        return CHANGE in self.plan.axes

    @property
    def has_slices(self) -> bool:
        """True if some cell is scored on more than one slice."""
        return any(len(row.slices) > 1 for row in self.rows)

    @property
    def extras(self) -> tuple[str, ...]:
        """The slices that `eval.task` adds. No task has them as its own, and no mean includes them."""
        own = {part for row in self.rows for part in row.own}
        return tuple(part for part in self.slices if part not in own)

    @property
    def several_values(self) -> bool:
        """True if in some cell an answer has several values, so that the share of right values is shown too."""
        return any(row.several_values for row in self.rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics other than accuracy that are shown, because they say more in some cell."""
        bits, free = any(row.bytewise for row in self.rows), any(row.free_answers for row in self.rows)
        return (*[TOKENS] * self.long_answers, *[VALUES] * self.several_values, *[FOUND] * free, *[BITS] * bits)

    @property
    def unmeasured(self) -> bool:
        """True if there are scores, but all records are too old to hold a baseline without recall."""
        return not self.baselined and any(row.accuracy.n for row in self.rows)

    @property
    def baselined(self) -> list[Row]:
        """The rows that have a baseline without recall."""
        return [row for row in self.rows if row.without_recall]

    @property
    def long_answers(self) -> bool:
        """True if in some cell an answer has several tokens, so that token accuracy is shown too."""
        return any(row.long_answers for row in self.rows)


def summarise(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> Summary:
    """Return the summary of a plan, with the records that `lookup` finds. A cell without records has a row without
    results.

    `curve` finds the evaluations of a run by its id; without it no row is marked as still improving. In a sequential
    grid, each row is over the seeds of the last look that included it.
    """
    looks = looks_so_far(plan, lookup, curve) if plan.until else None
    rows = [
        row_of(plan, cell, lookup, curve, looks.shown[place] if looks else None)
        for place, cell in enumerate(plan.cells)
    ]
    own = {part for row in rows for part in row.own}
    parts = sorted({part for row in rows for part in row.slices}, key=lambda part: (part not in own, natural(part)))
    rows = compared_at_looks(rows, looks) if looks else compared(rows)
    return Summary(plan, tuple(rows), tuple(parts), column_names_of(plan), looks)


def shortened(summary: Summary, most: int = MOST_ROWS) -> Summary:
    """Return the summary with at most `most` rows: the first row and those with the highest and the lowest accuracy.

    Rows stay in the plan's order. Differences and adjusted p values remain those of the full summary.
    """
    if len(summary.rows) <= most:
        return summary
    scored = [place for place, row in enumerate(summary.rows) if place and row.accuracy.mean is not None]
    places = sorted(scored, key=lambda place: -(summary.rows[place].accuracy.mean or 0.0))
    places = places or list(range(1, most))  # nothing is stored yet
    low = (most - 1) // 2
    kept = {0, *places[: most - 1 - low], *places[-low:]}
    return replace(summary, rows=tuple(summary.rows[place] for place in sorted(kept)))


def shortened_text(summary: Summary, every: Summary, where: str) -> str:
    """Return a sentence on which rows of `every` are left in `summary` (see `shortened`); empty if all are.

    `where` says where the other rows are.
    """
    if len(summary.rows) == len(every.rows):
        return ""
    low = (len(summary.rows) - 1) // 2
    return (
        f"{len(summary.rows)} of {len(every.rows):,} rows: the first, the {len(summary.rows) - 1 - low} of highest and "
        f"the {low} of lowest accuracy; {where}"
    )

"""More rows than anybody reads or draws: the ends of them stand for all."""

from dataclasses import replace

from mclab.report.table.row import Row
from mclab.report.table.summary import Summary

#: Rows of a table at a terminal and of a plot with a line or a place for each.
MOST_ROWS = 50


def ends(summary: Summary, most: int = MOST_ROWS) -> Summary:
    """The summary with the first row and those of the highest and the lowest accuracy alone, where there are many.

    Rows stay in the plan's order; what is compared and adjusted is as over all of them.
    """
    if len(summary.rows) <= most:
        return summary
    scored = [place for place, row in enumerate(summary.rows) if place and row.accuracy.mean is not None]
    places = sorted(scored, key=lambda place: -_mean(summary.rows[place]))
    places = places or list(range(1, most))  # nothing is stored yet
    low = (most - 1) // 2
    kept = {0, *places[: most - 1 - low], *places[-low:]}
    return replace(summary, rows=tuple(summary.rows[place] for place in sorted(kept)))


def _mean(row: Row) -> float:
    return row.accuracy.mean or 0.0


def told(summary: Summary, every: Summary, where: str) -> str:
    """How the rows of `summary`, as `ends` left them, stand for those of `every`; nothing where all are there."""
    if len(summary.rows) == len(every.rows):
        return ""
    low = (len(summary.rows) - 1) // 2
    return (
        f"{len(summary.rows)} of {len(every.rows):,} rows: the first, the {len(summary.rows) - 1 - low} of highest and "
        f"the {low} of lowest accuracy; {where}"
    )

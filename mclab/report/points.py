"""Accuracies of cells without a numeric axis: one line per cell, top to bottom as the plan lists them."""

from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mclab.report.marks import COLOURS, GREY, draw_lost, draw_seeds, interval_arms, limits, panels, seeds_in, spread_in
from mclab.report.row import Row
from mclab.report.sheet import sheet
from mclab.report.summary import Summary

BASELINE, OTHER, LOST = "black", COLOURS[0], COLOURS[1]
#: How far below a cell's mean its seeds lie, in rows.
BELOW = 0.27
LONGEST = 30
#: Inches; a thousand cells are drawn on top of each other rather than as an image that no program opens.
TALLEST = 80.0


def points_figure(summary: Summary) -> Figure:
    """One panel per slice; a cell is its mean with interval, its seeds below; the baseline's mean is dashed."""
    page = sheet(summary, 0.75 + min(0.38 * max(2, len(summary.rows)), TALLEST))
    for place, (axis, part) in enumerate(zip(page.panels, panels(summary), strict=True)):
        _panel(axis, summary, part)
        if page.lowest(place):
            axis.set_xlabel("test accuracy")
            axis.tick_params(labelbottom=True)
    return page.figure


def _panel(axis: Axes, summary: Summary, part: str) -> None:
    base = spread_in(summary.rows[0], part)
    if base.mean is not None and len(summary.rows) > 1 and not summary.crossed:
        axis.axvline(base.mean, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    for place, row in enumerate(summary.rows):
        _cell(axis, row, part, place, BASELINE if row.difference is None else OTHER)
    axis.set_xlim(*limits(summary))
    axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_ylim(len(summary.rows) - 0.35, -0.5)
    axis.set_yticks(range(len(summary.rows)), [_wrapped(row.label) for row in summary.rows])
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")


def _cell(axis: Axes, row: Row, part: str, place: int, colour: str) -> None:
    spread, (seeds, lost) = spread_in(row, part), seeds_in(row, part)
    low = place + BELOW
    draw_seeds(axis, seeds, [low] * len(seeds), colour)
    draw_lost(axis, [0.0] * lost, [low] * lost, LOST)
    if spread.mean is not None:
        arms = [[arm] for arm in interval_arms(spread)]
        axis.errorbar(
            spread.mean, place, xerr=arms, fmt="D", color=colour, markersize=4.6, elinewidth=1.5, capsize=2.5, zorder=4
        )


def _wrapped(text: str) -> str:
    """A name on at most two lines."""
    return "\n".join(wrap(text, LONGEST, max_lines=2, placeholder=" …", break_long_words=True))

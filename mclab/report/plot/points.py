"""Draw accuracy for a grid without a numeric key: a row of points for each cell, in the plan's order."""

from collections.abc import Sequence
from math import nan
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mclab.report.plot.figure import MOST_ACROSS, seeds_caption, sheet
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import (
    COLOURS,
    GREY,
    draw_lost,
    draw_seeds,
    interval_arms,
    limits,
    mean_text,
    panels,
    seed_texts,
    seeds_in,
    set_hover_texts,
    spread_in,
    without_recall_in,
)
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary, shortened, shortened_text

BASELINE, OTHER, LOST = "black", COLOURS[0], COLOURS[1]
#: How far below the mean the seeds are drawn, as a fraction of a row's height.
BELOW = 0.27
LONGEST = 30
#: The height of a row in inches. Panels are below each other if a name has more lines than `CROWDED`.
ROW, CROWDED = 0.38, 3


def points_figure(summary: Summary) -> Figure:
    """Draw a panel for each slice: for each cell its mean with interval, and below it the seeds.

    The baseline's mean is a dashed line. If there are many cells, only the first, the best and the worst are drawn, and
    the foot says so.
    """
    every, summary = summary, shortened(summary)
    foot = [seeds_caption(summary), shortened_text(summary, every, "the tables hold all.")]
    names = [named(row.label) for row in summary.rows]
    lines = max((wrapped(name).count("\n") + 1 for name in names), default=1)
    row = max(ROW, 0.06 + 0.15 * layout().scale * lines)
    across = 1 if max(map(len, names)) > CROWDED * letters_of_a_name() else MOST_ACROSS
    page = sheet(summary, 0.75 + row * max(2, len(names)), caption=" ".join(filter(None, foot)), across=across)
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
    cells = list(enumerate(summary.rows))
    _levels(axis, [(at, level) for at, row in cells if (level := without_recall_in(row, part)) is not None])
    for colour, base_line in ((BASELINE, True), (OTHER, False)):
        _cells(axis, [(at, row) for at, row in cells if (row.difference is None) == base_line], part, colour)
    axis.set_xlim(*limits(summary))
    axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_ylim(len(summary.rows) - 0.35, -0.5)
    axis.set_yticks(range(len(summary.rows)), [wrapped(named(row.label)) for row in summary.rows])
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")


def _levels(axis: Axes, levels: Sequence[tuple[int, float]]) -> None:
    """Draw the accuracy without recall as a dotted vertical line across the row of each cell.

    All of them are one matplotlib line with gaps, which is fast also for many cells.
    """
    xs = [x for _, level in levels for x in (level, level, nan)]
    ys = [y for at, _ in levels for y in (at - 0.5, at + 0.5, nan)]
    if xs:
        axis.plot(xs, ys, color=GREY, linewidth=1.0, linestyle=":", zorder=1)


def _cells(axis: Axes, cells: Sequence[tuple[int, Row]], part: str, colour: str) -> None:
    """Draw each of `cells` in its row in one colour: mean with interval, seeds, diverged seeds."""
    dots, lost, texts = list[tuple[float, float]](), list[float](), list[str]()
    for place, row in cells:
        seeds, diverged = seeds_in(row, part)
        dots += [(seed, place + BELOW) for seed in seeds]
        texts += seed_texts(row, part, named(row.label))
        lost += [place + BELOW] * diverged
    draw_seeds(axis, [x for x, _ in dots], [y for _, y in dots], colour, texts)
    draw_lost(axis, [0.0] * len(lost), lost, LOST)
    spreads = [(place, spread_in(row, part)) for place, row in cells]
    known = [(place, spread.mean, interval_arms(spread)) for place, spread in spreads if spread.mean is not None]
    bars = axis.errorbar(
        [mean for _, mean, _ in known],
        [place for place, _, _ in known],
        xerr=[[arms[side] for _, _, arms in known] for side in (0, 1)],
        fmt="D",
        color=colour,
        markersize=4.6,
        elinewidth=1.5,
        capsize=2.5,
        zorder=4,
    )
    set_hover_texts(
        bars[0], [mean_text(row, part, named(row.label)) for _, row in cells if spread_in(row, part).mean is not None]
    )


def wrapped(text: str) -> str:
    """Break the name of a row into at most two lines; in narrow figures into three or four."""
    letters = letters_of_a_name()
    lines = 2 if letters == LONGEST else CROWDED if len(text) <= CROWDED * letters else CROWDED + 1
    return "\n".join(wrap(text, letters, max_lines=lines, placeholder=" …", break_long_words=True))


def letters_of_a_name() -> int:
    """Return how many letters of a row's name fit into a line."""
    return min(LONGEST, max(16, layout().letters(LONGEST)))

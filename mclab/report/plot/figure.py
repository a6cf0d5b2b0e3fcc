"""Make the page of a figure: the question on top, the legend, the panels, and a foot that says how to read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.outcome import ALL
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import GREY, LEFT, panels, seeds_in
from mclab.report.stats import LEAST_PAIRS
from mclab.report.table.columns import baselines
from mclab.report.table.summary import Summary
from mclab.report.text import cut_middle, listed

#: The height of a foot with one line, in inches.
FOOT = 0.28
#: The number of letters in a line of the foot.
FOOT_LETTERS = 150
LEGEND_ROW = 0.2
TITLE_LETTERS = 84
MOST_ACROSS = 4


@dataclass(frozen=True)
class Sheet:
    """A figure and its visible panels, `across` of them in a row; the title takes the part `above` of the height."""

    figure: Figure
    panels: list[Axes]
    across: int
    above: float

    def lowest(self, place: int) -> bool:
        """Return whether no panel is below panel number `place`."""
        return place + self.across >= len(self.panels)


def sheet(
    summary: Summary,
    panel_height: float,
    legend_rows: int = 0,
    titles: Sequence[str] | None = None,
    caption: str | None = None,
    across: int = MOST_ACROSS,
    share: bool = True,
    dotted: bool = True,
) -> Sheet:
    """Create a figure with the question on top, room for a legend, empty panels, and a foot that says how to read them.

    `titles` are the titles of the panels, by default one for each slice of `panels`. `caption` is the first sentence of
    the foot, by default `seeds_caption`. `dotted` says that the baseline without recall is drawn. With `share`, the
    panels have the same axes.
    """
    if titles is None:
        whole = "mean of own slices" if summary.extras else "all slices"
        titles = [whole if part == ALL else named(part) for part in panels(summary)]
    foot = " ".join([caption or seeds_caption(summary), *marks_caption(summary, dotted)])
    return page(summary.plan.question or summary.plan.name, foot, panel_height, titles, legend_rows, across, share)


def page(
    title: str,
    foot: str,
    panel_height: float,
    titles: Sequence[str],
    legend_rows: int = 0,
    across: int = MOST_ACROSS,
    share: bool = True,
) -> Sheet:
    """Create a figure as `sheet` does, but with any title and foot. Both are broken into lines."""
    now = layout()
    across = now.across(min(across, len(titles)))
    down = -(-len(titles) // across)
    title = fill(title if now.heading is None else now.heading, now.letters(TITLE_LETTERS, 11.5, now.title))
    foot = fill(foot, now.letters(FOOT_LETTERS, 8, now.foot))
    title_height = 0.1 + 0.2 * now.title / 11.5 * (title.count("\n") + 1) * bool(title)
    foot_height = (FOOT + 0.14 * foot.count("\n")) * now.foot / 8
    above, height = title_height + LEGEND_ROW * now.scale * legend_rows, panel_height * down
    total = above + height + foot_height
    figure = Figure(figsize=(now.width, total))
    figure.set_layout_engine("constrained", rect=(0, foot_height / total, 1, height / total), wspace=0.03)
    figure.text(LEFT, 1 - 0.06 / total, title, va="top", fontsize=now.title, fontweight="bold")
    figure.text(LEFT, 0.06 / total, foot, va="bottom", fontsize=now.foot, color=GREY)
    grid = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share)
    axes = [axis for line in grid for axis in line]
    for spare in axes[len(titles) :]:
        spare.set_visible(False)
    if len(titles) > 1:
        for axis, text in zip(axes, titles, strict=False):
            axis.set_title(fill(text, now.letters(100) // across))
    return Sheet(figure, axes[: len(titles)], across, title_height / total)


def side_by_side(panels: int, most: int = 3) -> int:
    """Return how many panels to put in a row if there are `panels` in all: at most `most`, but 2 if there are four."""
    return 2 if panels == 4 and most > 2 else min(most, panels)


def wrapped_label(text: str, across: int) -> str:
    """Break the label of an axis into lines that fit the width of a panel, with `across` panels in a row."""
    return fill(text, layout().letters(110) // across)


def legend(page: Sheet, across: int) -> None:
    """Draw the legend between title and panels, with `across` labels in a row."""
    handles, given = page.panels[0].get_legend_handles_labels()
    labels = [cut_middle(label, max(12, layout().letters(112) // across - 7)) for label in given]
    corner = (LEFT, 1 - page.above)
    page.figure.legend(
        handles, labels, loc="upper left", bbox_to_anchor=corner, ncols=across, borderpad=0, borderaxespad=0
    )


def legend_columns(labels: Sequence[str]) -> int:
    """Return how many of `labels` fit into a row of about 112 letters, with 7 letters for each handle."""
    return max(1, min(len(labels), layout().letters(112) // (7 + max(map(len, labels), default=1))))


def seeds_caption(summary: Summary) -> str:
    """Return a sentence that says what the means, bars, dots and crosses are."""
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    bars = "Mean with 95 % t interval" if counts[-1] >= LEAST_PAIRS else "Mean, without an interval"
    few = [f"no interval below {LEAST_PAIRS} seeds"] if counts[0] < LEAST_PAIRS <= counts[-1] else []
    words = [f"{bars}, n = {n}", *few, "each small dot is a seed"]
    if any(seeds_in(row, ALL)[1] for row in summary.rows):
        words.append("×: diverged, counts as 0")
    if left := set(summary.slices) - set(panels(summary)):
        words.append(f"{len(left)} further slices are in the tables")
    return "; ".join(words) + "."


def marks_caption(summary: Summary, dotted: bool = True) -> Iterator[str]:
    """Yield sentences on what the figure itself does not say: the level without recall, ceilings, values at an edge."""
    found = [each.accuracy(part) for each in baselines(summary).values() for part in (ALL, *summary.slices)]
    if levels := sorted({f"{level:.3f}" for level in found if level is not None}):
        span = levels[0] if len(levels) == 1 else f"{levels[0]} to {levels[-1]}"
        without = f"the best predictor without recall ({span})"
        yield f"Dotted: {without}, where in view." if dotted else f"To compare with: {without}."
    high = [named(row.label) for row in summary.rows if row.ceiling]
    if high:
        yield f"At the ceiling with the baseline: {listed(high)}."
    for path in summary.selected:
        edged = [named(row.label) for row in summary.rows if path in row.edges]
        if edged:
            yield f"{summary.names[path]} at the edge of its range: {listed(edged)}."

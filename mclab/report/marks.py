"""What every plot of accuracies shares: colours, style, the mark of a cell, panels, limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.outcome import ALL
from mclab.report.row import Row, scores
from mclab.report.stats import Spread
from mclab.report.summary import Summary
from mclab.report.tables import clip

#: Okabe and Ito's palette for all kinds of colour vision (its yellow is too pale on white), and a grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
#: A second cue beside colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
GREY = "#666666"
#: Inches; a README shows it at about 100 dots an inch.
WIDTH = 8.4
FOOT = 0.28
LEGEND_ROW = 0.2
#: Left edge of title, legend and foot, as a share of the width.
LEFT = 0.01
TITLE_LETTERS = 84
MOST_ACROSS = 4

STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "text.parse_math": False,
    "savefig.dpi": 200,
    "svg.hashsalt": "mclab",
}


def panels(summary: Summary) -> tuple[str, ...]:
    """A panel for all scored positions, and one per slice where a cell has several."""
    return (ALL, *summary.slices) if summary.has_slices else (ALL,)


def spread_in(row: Row, part: str) -> Spread:
    """A cell's accuracy in a panel."""
    return row.accuracy if part == ALL else row.slices.get(part, Spread())


def seeds_in(row: Row, part: str) -> tuple[list[float], int]:
    """The accuracies of the seeds that finished, and how many diverged; nothing where the cell lacks the slice."""
    if part != ALL and part not in row.slices:
        return [], 0
    done = {seed: record for seed, record in row.records.items() if record["status"] == "done"}
    lost = sum(record["status"] == "diverged" for record in row.records.values())
    return list(scores(done, part).values()), lost


def interval_arms(spread: Spread) -> tuple[float, float]:
    """How far the interval, clipped to [0, 1], reaches to either side of the mean; nothing for a single seed."""
    lo, hi = clip(spread.lo, 0.0), clip(spread.hi, 0.0)
    if spread.mean is None or lo is None or hi is None:
        return 0.0, 0.0
    return max(0.0, spread.mean - lo), max(0.0, hi - spread.mean)


def limits(summary: Summary) -> tuple[float, float]:
    """Tenths that hold every seed and every interval, at least 0.3 apart, a little beyond them for the marks."""
    spreads = [spread_in(row, part) for row in summary.rows for part in panels(summary)]
    values = [v for s in spreads for v in (s.min, s.max, clip(s.lo, 0.0), clip(s.hi, 0.0)) if v is not None]
    if not values:
        return -0.03, 1.03
    least, most = floor(min(values) * 10) / 10, ceil(max(values) * 10) / 10
    least = max(0.0, min(least, round(most - 0.3, 1)))
    return least - 0.03, max(most, least + 0.3) + 0.03


def draw_seeds(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
    """Small dots, darker where several lie on each other."""
    axis.plot(xs, ys, "o", color=colour, alpha=0.45, markersize=3.4, markeredgewidth=0, zorder=2)


def draw_lost(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
    """Crosses for diverged seeds."""
    axis.plot(xs, ys, "x", color=colour, markersize=5, markeredgewidth=1.4, zorder=3)


@dataclass(frozen=True)
class Sheet:
    """A figure with its visible panels, `across` in a row; what stands above and below them is in inches."""

    figure: Figure
    panels: list[Axes]
    across: int
    above: float

    def lowest(self, place: int) -> bool:
        """True for a panel with none below it."""
        return place + self.across >= len(self.panels)


def sheet(summary: Summary, panel_height: float, legend_rows: int = 0) -> Sheet:
    """The question on top, room for a legend, an empty titled panel for each part, how to read it all at the foot."""
    parts = panels(summary)
    across = min(MOST_ACROSS, len(parts))
    down = -(-len(parts) // across)
    title = fill(summary.plan.question or summary.plan.name, TITLE_LETTERS)
    title_height = 0.1 + 0.2 * (title.count("\n") + 1)
    above, height = title_height + LEGEND_ROW * legend_rows, panel_height * down
    total = above + height + FOOT
    figure = Figure(figsize=(WIDTH, total))
    figure.set_layout_engine("constrained", rect=(0, FOOT / total, 1, height / total), wspace=0.03)
    figure.text(LEFT, 1 - 0.06 / total, title, va="top", fontsize=11.5, fontweight="bold")
    figure.text(LEFT, 0.06 / total, _caption(summary), va="bottom", fontsize=8, color=GREY)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    axes = [axis for line in grid for axis in line]
    for spare in axes[len(parts) :]:
        spare.set_visible(False)
    for axis, part in zip(axes, parts, strict=False):
        if len(parts) > 1:
            axis.set_title("all slices" if part == ALL else part)
    return Sheet(figure, axes[: len(parts)], across, title_height / total)


def _caption(summary: Summary) -> str:
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    words = [f"Mean with 95 % t interval, n = {n}", "each small dot is a seed"]
    if any(seeds_in(row, ALL)[1] for row in summary.rows):
        words.append("×: diverged, counts as 0")
    return "; ".join(words) + "."

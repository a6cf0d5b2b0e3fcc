"""Accuracy by slice of many rows: a line for each row from its lowest slice to its highest, a point for each slice."""

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mclab.report.names import value_text
from mclab.report.plot.figure import legend, legend_columns, sheet, side_by_side
from mclab.report.plot.layout import layout, named
from mclab.report.plot.points import wrapped
from mclab.report.plot.slice_cells import Group, Spot, families, groups, values_along
from mclab.report.plot.style import GREY, MARKERS, interval_arms, limits, mean_text, say, spread_in, without_recall_in
from mclab.report.stats import LEAST_PAIRS
from mclab.report.table.many import ends, told
from mclab.report.table.summary import Summary

#: Even steps of lightness, told apart in grey too; its yellow end is too pale on white.
COLOUR_MAP, PALEST = "viridis", 0.82
#: Inches of a row.
ROW = 0.3


def dumbbell_figure(summary: Summary, found: Sequence[Spot], key: str) -> Figure:
    """Rows from top to bottom, a marker and colour for each value of `key`; a panel for each family of other keys."""
    every, summary = summary, ends(summary)
    kept = {id(row) for row in summary.rows}
    shown = [spot for spot in found if id(spot.row) in kept]
    values = [value_text(value) for value in values_along(shown, key)]
    panels = families(shown, [key])
    lines = [group.label for group in groups(summary, shown, [key])]
    names = [named(f"{key}={value}") for value in values]
    deepest = max(wrapped(named(line)).count("\n") + 1 for line in lines)
    row = max(ROW, 0.06 + 0.15 * layout().scale * deepest)
    across = legend_columns(names)
    page = sheet(
        summary,
        0.75 + row * len(lines),
        -(-len(names) // across),
        [named(title) for title in panels],
        " ".join(filter(None, [_caption(summary), told(summary, every, "the tables hold all.")])),
        side_by_side(len(panels)),
    )
    for place, (axes, own) in enumerate(zip(page.panels, panels.values(), strict=True)):
        _panel(axes, lines, groups(summary, own, [key]), key, values)
        axes.set_yticks(range(len(lines)), [wrapped(named(line)) for line in lines])
        axes.set_xlim(*limits(summary, list(dict.fromkeys(spot.part for spot in shown))))
        if page.lowest(place):
            axes.set_xlabel("test accuracy")
            axes.tick_params(labelbottom=True)
    legend(page, across)
    return page.figure


def _caption(summary: Summary) -> str:
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    bars = "with 95 % t interval" if counts[-1] >= LEAST_PAIRS else "without an interval"
    return f"Mean over seeds {bars}, n = {n}; grey: from a row's lowest slice to its highest."


def _panel(axes: Axes, lines: Sequence[str], found: Sequence[Group], key: str, values: Sequence[str]) -> None:
    spots = {group.label: {value_text(spot.at[key]): spot for spot in group.spots} for group in found}
    for at, line in enumerate(lines):
        means = [
            mean for spot in spots.get(line, {}).values() if (mean := spread_in(spot.row, spot.part).mean) is not None
        ]
        if means:
            axes.plot([min(means), max(means)], [at, at], color=GREY, linewidth=1.2, alpha=0.6, zorder=1)
    for number, value in enumerate(values):
        own = [(at, spots[line][value]) for at, line in enumerate(lines) if value in spots.get(line, {})]
        _points(
            axes,
            [(at, spot) for at, spot in own if spot.row.slices[spot.part].n],
            number,
            len(values),
            f"{key}={value}",
        )
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter("{x:g}")


def _points(axes: Axes, own: Sequence[tuple[int, Spot]], number: int, count: int, name: str) -> None:
    """One slice of all rows, each a little above or below its row's middle so that intervals do not lie on each other;
    what is had without recall as a short upright line."""
    colour = to_hex(colormaps[COLOUR_MAP](PALEST * number / max(1, count - 1)))
    shift = (number - (count - 1) / 2) * min(0.12, 0.5 / count)
    spreads = [spread_in(spot.row, spot.part) for _, spot in own]
    arms = [interval_arms(spread) for spread in spreads]
    bars = axes.errorbar(
        [spread.mean or 0.0 for spread in spreads],
        [at + shift for at, _ in own],
        xerr=[[arm[side] for arm in arms] for side in (0, 1)],
        fmt=MARKERS[number],
        color=colour,
        markersize=4.6,
        elinewidth=0.9,
        label=named(name),
        zorder=3,
    )
    say(bars[0], [mean_text(spot.row, spot.part, f"{named(spot.row.label)}, {named(spot.part)}") for _, spot in own])
    levels = [(level, at) for at, spot in own if (level := without_recall_in(spot.row, spot.part)) is not None]
    axes.plot(
        [x for x, _ in levels], [y for _, y in levels], "|", color=colour, markersize=7 * layout().scale, alpha=0.7
    )

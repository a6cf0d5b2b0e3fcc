"""Draw accuracy by slice, with a line for each row, against the slices or the number of items to memorise (capacity).

If there are many rows, each is a dumbbell instead: a horizontal line from its lowest to its highest slice, with a point
for each slice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mclab.config.strict import ConfigError
from mclab.report.plot.figure import legend, legend_columns, sheet, side_by_side
from mclab.report.plot.layout import layout, named
from mclab.report.plot.points import wrapped
from mclab.report.plot.slice_cells import Group, Spot, families, groups, own_key, spots, values_along, varied
from mclab.report.plot.style import (
    COLOURS,
    GREY,
    MARKERS,
    MOST_DASHES,
    draw_line,
    draw_without_recall,
    interval_arms,
    limits,
    mean_text,
    places_of,
    set_hover_texts,
    spread_in,
    thinned,
    without_recall_in,
)
from mclab.report.stats import LEAST_PAIRS
from mclab.report.table.summary import Summary, shortened, shortened_text
from mclab.report.text import is_number, value_text

#: Keys for the number of items that a model must memorise; the first of them that varies is drawn.
CAPACITY = ("pairs", "needles", "keys", "values")
#: The number of pairs of colour and dash, and so the largest number of lines in a figure.
MOST_LINES = len(COLOURS) * MOST_DASHES
MOST_PANELS = 12
#: For more lines than this, dumbbells are drawn.
MOST_SIDE_BY_SIDE = 8
#: A colour map with even steps of lightness, which also works without colour. Above `PALEST` it is too pale on white.
COLOUR_MAP, PALEST = "viridis", 0.82
#: Height of a row in inches.
ROW = 0.3


@dataclass(frozen=True)
class Drawn:
    """The content of a figure: the key along x, its values, a panel for each family of other keys, and the labels of
    lines.

    `numbers` says that the values are numbers, so that x is logarithmic.
    """

    key: str
    numbers: bool
    values: list[Any]
    panels: dict[str, list[Spot]]
    lines: list[str]

    @property
    def parts(self) -> list[str]:
        """All slices that are shown."""
        return list(dict.fromkeys(spot.part for found in self.panels.values() for spot in found))


def slices_figure(summary: Summary) -> Figure:
    """Draw accuracy against the slices. Slices of further test variants (`eval.task`) have separate panels.

    Few rows are drawn as lines, many as dumbbells. Raises `ConfigError` if no row has several slices.
    """
    found = spots(summary)
    keys = varied(found)
    if not found:
        raise ConfigError("slices: no finished run is stored")
    if not keys:
        raise ConfigError("slices: every row has one slice only; eval.task adds slices")
    own = [key for row in summary.rows if (key := own_key(row)) in keys]
    key = own[0] if own else keys[0]
    shown = [spot for spot in found if key in spot.at]
    if len(groups(summary, shown, [key])) > MOST_SIDE_BY_SIDE and len(values_along(shown, key)) <= len(MARKERS):
        return dumbbell_figure(summary, shown, key)
    return _figure(summary, _drawn(summary, found, key, numbers=False))


def capacity_figure(summary: Summary) -> Figure:
    """Draw accuracy against the number of items to memorise (`CAPACITY`), on a logarithmic axis.

    Raises `ConfigError` if no such number varies.
    """
    found = spots(summary)
    keys = [key for key in CAPACITY if key in varied(found, within_rows=False) and _positive(found, key)]
    if not keys:
        raise ConfigError(f"capacity: no number of {' or '.join(CAPACITY[:2])} varies in slices or rows")
    return _figure(summary, _drawn(summary, found, keys[0], numbers=True))


def _positive(found: Sequence[Spot], key: str) -> bool:
    known = [spot for spot in found if is_number(spot.at.get(key))]
    return len(values_along(known, key)) > 1 and all(spot.at[key] > 0 for spot in known)


def _drawn(summary: Summary, found: Sequence[Spot], key: str, numbers: bool) -> Drawn:
    shown = [spot for spot in found if key in spot.at and (not numbers or is_number(spot.at[key]))]
    lines = [group.label for group in groups(summary, shown, [key])]
    if len(lines) > MOST_LINES:
        raise ConfigError(f"{key}: the plot would have {len(lines)} lines, but at most {MOST_LINES} can be told apart")
    parted = families(shown, [key])
    return Drawn(key, numbers, values_along(shown, key), dict(list(parted.items())[:MOST_PANELS]), lines)


def _figure(summary: Summary, drawn: Drawn) -> Figure:
    across = legend_columns([named(line) for line in drawn.lines])
    rows = -(-len(drawn.lines) // across) if len(drawn.lines) > 1 else 0
    height, beside = 2.6 if len(drawn.panels) > 1 else 3.2, side_by_side(len(drawn.panels))
    page = sheet(summary, height, rows, [named(title) for title in drawn.panels], across=beside)
    for place, (panel, found) in enumerate(zip(page.panels, drawn.panels.values(), strict=True)):
        _panel(panel, drawn, groups(summary, found, [drawn.key]), page.across)
        panel.set_ylim(*limits(summary, drawn.parts))
        if place % page.across == 0:
            panel.set_ylabel("test accuracy")
        if page.lowest(place):
            panel.set_xlabel(named(drawn.key) + " (logarithmic)" * drawn.numbers)
            panel.tick_params(labelbottom=True)
    if rows:
        legend(page, across)
    return page.figure


def _panel(panel: Axes, drawn: Drawn, found: Sequence[Group], across: int) -> None:
    places = dict(zip(map(value_text, drawn.values), _along(drawn), strict=True))
    at = list(places.values())
    width = min(0.1, 0.5 / len(drawn.lines)) * min((b - a for a, b in pairwise(at)), default=1.0)
    by_label = {group.label: group for group in found}
    for number, label in enumerate(drawn.lines):
        shift = (number - (len(drawn.lines) - 1) / 2) * width
        own = {places[value_text(spot.at[drawn.key])]: spot for spot in by_label.get(label, Group(label, ())).spots}
        scored = [(own[place].row, own[place].part) for place in sorted(own)]
        style = (number % len(COLOURS), number // len(COLOURS))
        draw_line(panel, label, style, [place + shift for place in sorted(own)], scored, 0.45 * width)
    draw_without_recall(panel, [_levels(group, drawn.key, places) for group in found])
    panel.set_xticks(at, thinned({place: text for text, place in places.items()}, 0.9 * layout().width / across))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.grid(visible=False, axis="x")


def _levels(group: Group, key: str, places: Mapping[str, float]) -> list[tuple[float, float | None]]:
    """Return (place along x, accuracy without recall) for the points of a line, from left to right."""
    found = {places[value_text(spot.at[key])]: without_recall_in(spot.row, spot.part) for spot in group.spots}
    return sorted(found.items())


def _along(drawn: Drawn) -> list[float]:
    """Return the place along x of each value: 0, 1, 2, ..., or the logarithm if the values are numbers."""
    if not drawn.numbers:
        return [float(place) for place in range(len(drawn.values))]
    return list(places_of([float(value) for value in drawn.values], wide_from=1).values())


def dumbbell_figure(summary: Summary, found: Sequence[Spot], key: str) -> Figure:
    """Draw the rows from top to bottom, with a marker and a colour for each value of `key`.

    There is a panel for each family of the other keys (see `families`).
    """
    every, summary = summary, shortened(summary)
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
        " ".join(filter(None, [_dumbbell_caption(summary), shortened_text(summary, every, "the tables hold all.")])),
        side_by_side(len(panels)),
    )
    for place, (axes, own) in enumerate(zip(page.panels, panels.values(), strict=True)):
        _dumbbell_panel(axes, lines, groups(summary, own, [key]), key, values)
        axes.set_yticks(range(len(lines)), [wrapped(named(line)) for line in lines])
        axes.set_xlim(*limits(summary, list(dict.fromkeys(spot.part for spot in shown))))
        if page.lowest(place):
            axes.set_xlabel("test accuracy")
            axes.tick_params(labelbottom=True)
    legend(page, across)
    return page.figure


def _dumbbell_caption(summary: Summary) -> str:
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    bars = "with 95 % t interval" if counts[-1] >= LEAST_PAIRS else "without an interval"
    return f"Mean over seeds {bars}, n = {n}; grey: from a row's lowest slice to its highest."


def _dumbbell_panel(axes: Axes, lines: Sequence[str], found: Sequence[Group], key: str, values: Sequence[str]) -> None:
    spots = {group.label: {value_text(spot.at[key]): spot for spot in group.spots} for group in found}
    for at, line in enumerate(lines):
        means = [
            mean for spot in spots.get(line, {}).values() if (mean := spread_in(spot.row, spot.part).mean) is not None
        ]
        if means:
            axes.plot([min(means), max(means)], [at, at], color=GREY, linewidth=1.2, alpha=0.6, zorder=1)
    for number, value in enumerate(values):
        own = [(at, spots[line][value]) for at, line in enumerate(lines) if value in spots.get(line, {})]
        _dumbbell_points(
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


def _dumbbell_points(axes: Axes, own: Sequence[tuple[int, Spot]], number: int, count: int, name: str) -> None:
    """Draw the points of slice `number` of `count` for all rows, shifted a little so that intervals do not overlap.

    The accuracy without recall is a short vertical line.
    """
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
    set_hover_texts(
        bars[0], [mean_text(spot.row, spot.part, f"{named(spot.row.label)}, {named(spot.part)}") for _, spot in own]
    )
    levels = [(level, at) for at, spot in own if (level := without_recall_in(spot.row, spot.part)) is not None]
    axes.plot(
        [x for x, _ in levels], [y for _, y in levels], "|", color=colour, markersize=7 * layout().scale, alpha=0.7
    )

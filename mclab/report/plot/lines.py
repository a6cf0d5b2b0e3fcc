"""Draw accuracy against a numeric key of the grid, with one line for each value of the other keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.report.plot.figure import legend, legend_columns, sheet, wrapped_label
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import (
    COLOURS,
    DASHES,
    MOST_DASHES,
    draw_line,
    draw_without_recall,
    interval_arms,
    limits,
    panels,
    places_of,
    spread_in,
    thinned,
    without_recall_in,
)
from mclab.report.table.row import Row
from mclab.report.table.summary import MOST_ROWS, Summary
from mclab.report.text import NOTHING, full_label, is_number, plain, value_text

#: The least number of points in a line, and the largest number of lines in a figure.
LEAST_VALUES, MOST_LINES = 3, 8


@dataclass(frozen=True)
class Axis:
    """The keys of the figure: the numeric key along x, the keys in which lines differ, the keys zipped with x."""

    path: str
    others: tuple[str, ...]
    followers: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A line: cells in the order of x. `colour` and `dash` are indices into the palettes.

    `xs` is empty for a reference, that is for cells in which the numeric key has no effect.
    """

    label: str
    xs: tuple[float, ...]
    rows: tuple[Row, ...]
    colour: int
    dash: int


def numeric_axis(summary: Summary) -> Axis | None:
    """Return the keys of the figure, with the numeric key of most values along x; `None` if no key is suitable.

    A suitable key has at least three values, is set in at least half of the rows, and gives at most `MOST_LINES` lines.
    """
    if summary.plan.named:
        return None
    paths = [path for path in summary.plan.axes if _numeric(summary, path)]
    for path in sorted(paths, key=lambda path: -len(_values(summary, path))):
        axis = _split(summary, path)
        if len(lines_along(summary, axis)) <= MOST_LINES:
            return axis
    return None


def _values(summary: Summary, path: str) -> set[Any]:
    return {plain(row.values[path]) for row in summary.rows if path in row.values}


def _numeric(summary: Summary, path: str) -> bool:
    known = [row.values[path] for row in summary.rows if path in row.values]
    enough = 2 * len(known) >= len(summary.rows)
    return enough and all(map(is_number, known)) and len(_values(summary, path)) >= LEAST_VALUES


def _split(summary: Summary, path: str) -> Axis:
    """Divide the keys other than `path`: followers have exactly one value for each x; lines differ in the rest."""
    others = [other for other in summary.plan.axes if other != path]
    followers = tuple(other for other in others if _follows(summary, other, path))
    return Axis(path, tuple(other for other in others if other not in followers), followers)


def _follows(summary: Summary, other: str, path: str) -> bool:
    rows = [row for row in summary.rows if path in row.values]
    pairs = {(plain(row.values[path]), value_text(row.values.get(other))) for row in rows}
    return len({text for _, text in pairs}) > 1 and len(pairs) == len(_values(summary, path))


def followed(summary: Summary, path: str, other: str) -> list[str]:
    """Return the values of the key `other`, which is zipped with `path`, in the order of the values of `path`."""
    pairs = {plain(row.values[path]): value_text(row.values.get(other)) for row in summary.rows if path in row.values}
    return [pairs[x] for x in sorted(pairs)]


def lines_along(summary: Summary, axis: Axis) -> list[Line]:
    """Return the cells as lines and references, in the plan's order."""
    names = {path: summary.names[path] for path in axis.others}
    groups: dict[tuple[bool, str], list[Row]] = {}
    for row in summary.rows:
        told = {path: row.values[path] for path in axis.others if path in row.values}
        groups.setdefault((axis.path in row.values, full_label(told, names)), []).append(row)
    styles = _styles(axis, [rows[0] for rows in groups.values()])
    return [
        _line_of(text, rows, axis.path if along else None, style)
        for ((along, text), rows), style in zip(groups.items(), styles, strict=True)
    ]


def _styles(axis: Axis, firsts: Sequence[Row]) -> list[tuple[int, int]]:
    """Return colour and dash of each line, as indices into the palettes.

    If lines differ in two keys, colours show the key with more values, and dashes show the other key if it has few
    enough values. Otherwise each line has a different colour.
    """
    texts = [[value_text(row.values.get(path)) for path in axis.others] for row in firsts]
    if len(axis.others) != 2:
        return [(number, 0) for number in range(len(firsts))]
    distinct = [list(dict.fromkeys(pair[side] for pair in texts)) for side in (0, 1)]
    hue = 0 if len(distinct[0]) > len(distinct[1]) else 1
    if len(distinct[1 - hue]) > MOST_DASHES:
        return [(number, 0) for number in range(len(firsts))]
    return [(distinct[hue].index(pair[hue]), distinct[1 - hue].index(pair[1 - hue])) for pair in texts]


def _line_of(text: str, rows: Sequence[Row], path: str | None, style: tuple[int, int]) -> Line:
    if path is None:
        return Line(text, (), tuple(rows), *style)
    ordered = sorted(rows, key=lambda row: float(plain(row.values[path])))
    return Line(text, tuple(float(plain(row.values[path])) for row in ordered), tuple(ordered), *style)


def lines_figure(summary: Summary, axis: Axis) -> Figure:
    """Draw a panel for each slice: means with intervals, joined along the numeric key, and every seed."""
    lines = lines_along(summary, axis)
    across = legend_columns([named(line.label) for line in lines])
    rows = -(-len(lines) // across) if len(lines) > 1 else 0
    page = sheet(summary, 2.5 if summary.has_slices else 3.2, rows, caption=_dense_caption(summary, lines))
    for place, (panel, part) in enumerate(zip(page.panels, panels(summary), strict=True)):
        _panel(panel, summary, lines, part, page.across)
        if place % page.across == 0:
            panel.set_ylabel("test accuracy")
        if page.lowest(place):
            panel.set_xlabel(wrapped_label(_x_label(summary, axis), page.across))
            panel.tick_params(labelbottom=True)
    if len(lines) > 1:
        legend(page, across)
    return page.figure


def _dense_caption(summary: Summary, lines: Sequence[Line]) -> str | None:
    """Return a caption about lines and bands; `None` if every line has few enough points to be drawn without a band."""
    if all(len(line.xs) <= MOST_ROWS for line in lines):
        return None
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    values = max(len(line.xs) for line in lines)
    return f"Lines: mean over seeds, n = {n}; bands: 95 % t interval. Too many values ({values}) to draw every seed."


def _x_label(summary: Summary, axis: Axis) -> str:
    """Return the name of the key along x with the values of keys zipped with it, e.g. `length (pairs 4, 8, 16)`."""
    told = [f"{named(summary.names[path])} {', '.join(followed(summary, axis.path, path))}" for path in axis.followers]
    return named(summary.names[axis.path]) + (f" ({'; '.join(told)})" if told else "")


def _panel(panel: Axes, summary: Summary, lines: Sequence[Line], part: str, across: int) -> None:
    places = places_of(sorted({x for line in lines for x in line.xs}))
    at = list(places.values())
    step = min(b - a for a, b in pairwise(at))
    width = min(0.1, 0.5 / len(lines)) * step * (1.0 if summary.has_slices else 0.6)
    for number, line in enumerate(lines):
        shift = (number - (len(lines) - 1) / 2) * width
        own = [places[x] for x in line.xs] or [at[0] - step] * len(line.rows)
        _draw(panel, line, [place + shift for place in own], 0.45 * width, part)
    draw_without_recall(panel, [_levels(line, places, part) for line in lines])
    aside = {at[0] - step: NOTHING} if any(not line.xs for line in lines) else {}
    ticks = aside | {place: f"{value:g}" for value, place in places.items()}
    labels = thinned(ticks, 0.9 * layout().width / across)
    drawn = [(at, label) for at, label in zip(ticks, labels, strict=True) if label or len(ticks) <= MOST_ROWS]
    panel.set_xticks([at for at, _ in drawn], [label for _, label in drawn])
    panel.set_ylim(*limits(summary))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.grid(visible=False, axis="x")


def _levels(line: Line, places: Mapping[float, float], part: str) -> list[tuple[float, float | None]]:
    """Return (place along x, accuracy without recall) for the points of a line; empty for a reference."""
    return [(places[x], without_recall_in(row, part)) for x, row in zip(line.xs, line.rows, strict=False)]


def _draw(panel: Axes, line: Line, at: Sequence[float], aside: float, part: str) -> None:
    if len(line.xs) > MOST_ROWS:
        _draw_band(panel, line, at, part)
        return
    known = draw_line(panel, line.label, (line.colour, line.dash), at, [(row, part) for row in line.rows], aside)
    if not line.xs and known:
        panel.axhline(known[0], color=COLOURS[line.colour], linewidth=0.9, linestyle=":", zorder=1)


def _draw_band(panel: Axes, line: Line, at: Sequence[float], part: str) -> None:
    """Draw a line of many points: the means joined, the intervals as a band, and no seeds."""
    spreads = [(place, spread_in(row, part)) for place, row in zip(at, line.rows, strict=True)]
    known = [(place, spread.mean, interval_arms(spread)) for place, spread in spreads if spread.mean is not None]
    xs, means = [place for place, _, _ in known], [mean for _, mean, _ in known]
    colour = COLOURS[line.colour]
    panel.plot(xs, means, color=colour, linestyle=DASHES[line.dash], linewidth=1.3, label=named(line.label))
    low, high = ([mean + side * arms[side > 0] for _, mean, arms in known] for side in (-1, 1))
    panel.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)

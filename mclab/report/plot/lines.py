"""Accuracies along a numeric axis: one line per value of the other axes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.outcome import ALL
from mclab.report.align import NOTHING
from mclab.report.plot.axis import Axis, Line, followed, lines_along
from mclab.report.plot.figure import legend, legend_columns, sheet, wrapped_label
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import (
    COLOURS,
    DASHES,
    MARKERS,
    draw_lost,
    draw_seeds,
    draw_without_recall,
    interval_arms,
    limits,
    mean_text,
    panels,
    say,
    seed_texts,
    seeds_in,
    spread_in,
    without_recall_in,
)
from mclab.report.table.many import MOST_ROWS
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary

#: From this ratio of the largest to the smallest value on, the axis is logarithmic.
LOG_FROM = 4
#: Width of a tick label's letter, in inches.
LETTER = 0.085


def lines_figure(summary: Summary, axis: Axis) -> Figure:
    """One panel per slice: mean with interval and every seed, joined along the numeric key."""
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
    """What a line and its band are; `None` where every value has its marks."""
    if all(len(line.xs) <= MOST_ROWS for line in lines):
        return None
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    values = max(len(line.xs) for line in lines)
    return f"Lines: mean over seeds, n = {n}; bands: 95 % t interval. Too many values ({values}) to draw every seed."


def _x_label(summary: Summary, axis: Axis) -> str:
    """The key's name, with the values of what is zipped with it: `length (pairs 4, 8, 16)`."""
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
    """What is had without recall along a line; nothing along a reference."""
    return [(places[x], without_recall_in(row, part)) for x, row in zip(line.xs, line.rows, strict=False)]


def thinned(ticks: Mapping[float, str], inches: float) -> list[str]:
    """The labels, in a panel of that width, without those that would run into the one before; the last one stays."""
    ats = list(ticks)
    scale = 0.9 * inches / (ats[-1] - ats[0] or 1.0)

    def clear(one: float, other: float) -> bool:
        return (other - one) * scale >= LETTER * layout().scale * ((len(ticks[one]) + len(ticks[other])) / 2 + 1)

    kept: list[float] = []
    for at in ats:
        while at == ats[-1] and kept and not clear(kept[-1], at):
            kept.pop()
        if not kept or clear(kept[-1], at):
            kept.append(at)
    shown = set(kept)
    return [ticks[at] if at in shown else "" for at in ats]


def places_of(values: Sequence[float], wide_from: float = LOG_FROM) -> dict[float, float]:
    """Where each value stands along x: at its logarithm where the values span a ratio of `wide_from` or more."""
    wide = values[0] > 0 and values[-1] / values[0] >= wide_from
    return {value: log2(value) if wide else value for value in values}


def _draw(panel: Axes, line: Line, at: Sequence[float], aside: float, part: str) -> None:
    if len(line.xs) > MOST_ROWS:
        _draw_band(panel, line, at, part)
        return
    known = draw_line(panel, line.label, (line.colour, line.dash), at, [(row, part) for row in line.rows], aside)
    if not line.xs and known:
        panel.axhline(known[0], color=COLOURS[line.colour], linewidth=0.9, linestyle=":", zorder=1)


def _draw_band(panel: Axes, line: Line, at: Sequence[float], part: str) -> None:
    """A line of many values: its means joined, its intervals as a band."""
    spreads = [(place, spread_in(row, part)) for place, row in zip(at, line.rows, strict=True)]
    known = [(place, spread.mean, interval_arms(spread)) for place, spread in spreads if spread.mean is not None]
    xs, means = [place for place, _, _ in known], [mean for _, mean, _ in known]
    colour = COLOURS[line.colour]
    panel.plot(xs, means, color=colour, linestyle=DASHES[line.dash], linewidth=1.3, label=named(line.label))
    low, high = ([mean + side * arms[side > 0] for _, mean, arms in known] for side in (-1, 1))
    panel.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)


def draw_line(
    panel: Axes,
    label: str,
    style: tuple[int, int],
    at: Sequence[float],
    scored: Sequence[tuple[Row, str]],
    aside: float,
    marker: int | None = None,
) -> list[float]:
    """Means with their intervals at `at`, joined, the seeds `aside` to the right of them; the means that there are.

    `style` is a place in the palettes of colours and of dashes, `marker` one in that of markers, by default as the
    colour's; `scored` a cell and a slice for each place.
    """
    colour = COLOURS[style[0]]
    for place, (row, part) in zip(at, scored, strict=True):
        seeds, lost = seeds_in(row, part)
        told = seed_texts(row, part, _told(label, row, part))
        draw_seeds(panel, [place + aside] * len(seeds), seeds, colour, told)
        draw_lost(panel, [place + aside] * lost, [0.0] * lost, colour)
    spreads = [(place, spread_in(row, part)) for place, (row, part) in zip(at, scored, strict=True)]
    known = [(place, spread.mean, interval_arms(spread)) for place, spread in spreads if spread.mean is not None]
    bars = panel.errorbar(
        [place for place, _, _ in known],
        [mean for _, mean, _ in known],
        yerr=[[arms[side] for _, _, arms in known] for side in (0, 1)],
        fmt=MARKERS[style[0] if marker is None else marker],
        linestyle=DASHES[style[1]],
        color=colour,
        markersize=4.4,
        linewidth=1.3,
        elinewidth=1.1,
        capsize=2,
        label=named(label),
    )
    say(bars[0], [mean_text(row, part, _told(label, row, part)) for row, part in scored if spread_in(row, part).n])
    return [mean for _, mean, _ in known]


def _told(label: str, row: Row, part: str) -> str:
    """A line and a place on it in words."""
    names = list(dict.fromkeys(named(text) for text in (label, row.label)))
    return ", ".join([*names, *([named(part)] if part != ALL else [])])

"""What every plot of accuracies shares: colours, style, the marks of a cell, which panels, limits."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log2
from typing import Any
from weakref import WeakKeyDictionary

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from mclab.config.outcome import ALL
from mclab.report.plot.layout import layout, named
from mclab.report.stats import LEAST_PAIRS, Spread
from mclab.report.table.accuracy import scores
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import clip, interval, mean_std

#: Okabe and Ito's palette for all kinds of colour vision (its yellow is too pale on white), and a grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
#: A second cue beside colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
#: More dashes than these cannot be told apart.
MOST_DASHES = 4
GREY = "#666666"
#: Inches; a README shows it at about 100 dots an inch.
WIDTH = 8.4
#: Left edge of title, legend and foot, as a share of the width.
LEFT = 0.01
#: Of more slices than this only the task's own get a panel each; the plots by slice show the others.
MOST_PARTS = 11
#: From this ratio of the largest to the smallest value on, the axis is logarithmic.
LOG_FROM = 4
#: Width of a tick label's letter, in inches.
LETTER = 0.085

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
    "pdf.fonttype": 42,  # TrueType: journals refuse Type 3
    "ps.fonttype": 42,
    "svg.hashsalt": "mclab",
}


def panels(summary: Summary) -> tuple[str, ...]:
    """A panel for all scored positions, and one per slice where a cell has several; of too many the task's own."""
    if not summary.has_slices:
        return (ALL,)
    if len(summary.slices) <= MOST_PARTS:
        return (ALL, *summary.slices)
    kept = [part for part in summary.slices if part not in summary.extras]
    return (ALL, *kept) if 1 < len(kept) <= MOST_PARTS else (ALL,)


def spread_in(row: Row, part: str) -> Spread:
    """A cell's accuracy in a panel."""
    return row.accuracy if part == ALL else row.slices.get(part, Spread())


def seeds_in(row: Row, part: str) -> tuple[list[float], int]:
    """The accuracies of the seeds that finished, and how many diverged; nothing where the cell lacks the slice."""
    if part != ALL and part not in row.slices:
        return [], 0
    done = {seed: record for seed, record in row.records.items() if record.status == "done"}
    lost = sum(record.status == "diverged" for record in row.records.values())
    return list(scores(done, part).values()), lost


def interval_arms(spread: Spread) -> tuple[float, float]:
    """How far the interval, clipped to [0, 1], reaches to either side of the mean.

    Nothing for one seed or two: a t interval of two is 12.7 standard errors wide to each side, and the two stand there
    as dots.
    """
    lo, hi = _ends(spread)
    if spread.mean is None or lo is None or hi is None:
        return 0.0, 0.0
    return max(0.0, spread.mean - lo), max(0.0, hi - spread.mean)


def _ends(spread: Spread) -> tuple[float | None, float | None]:
    """The ends of the interval that is drawn, clipped to [0, 1]."""
    return (clip(spread.lo, 0.0), clip(spread.hi, 0.0)) if spread.n >= LEAST_PAIRS else (None, None)


def limits(summary: Summary, parts: Sequence[str] | None = None) -> tuple[float, float]:
    """Tenths that hold every seed and every interval on `parts` (by default `panels`), and the baselines without recall
    of rows that are not above them; at least 0.3 apart, a little beyond them for the marks."""
    shown = [(row, part) for row in summary.rows for part in parts or panels(summary)]
    spreads = [spread_in(row, part) for row, part in shown]
    values = [v for s in spreads for v in (s.min, s.max, *_ends(s)) if v is not None]
    values += [v for row, part in shown if row.guessing and (v := without_recall_in(row, part)) is not None]
    if not values:
        return -0.03, 1.03
    least, most = floor(min(values) * 10) / 10, ceil(max(values) * 10) / 10
    least = max(0.0, min(least, round(most - 0.3, 1)))
    return least - 0.03, max(most, least + 0.3) + 0.03


def without_recall_in(row: Row, part: str) -> float | None:
    """What the best predictor without recall scores in a panel."""
    return row.without_recall.accuracy(part) if row.without_recall else None


def draw_without_recall(axis: Axes, series: Iterable[Sequence[tuple[float, float | None]]]) -> None:
    """(place along x, level): dotted across the whole panel where there is one level, else along each line's places."""
    known = [tuple((at, level) for at, level in each if level is not None) for each in series]
    levels = {level for each in known for _, level in each}
    style: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": ":", "zorder": 1}
    if len(levels) == 1:
        axis.axhline(levels.pop(), **style)
        return
    for each in filter(None, dict.fromkeys(known)):
        axis.plot([at for at, _ in each], [level for _, level in each], **style)


#: The text of each point of a line, shown where somebody points at it (`mclab report`).
_SAID: WeakKeyDictionary[Artist, tuple[str, ...]] = WeakKeyDictionary()


def set_hover_texts(artist: Artist, texts: Sequence[str]) -> None:
    """Give each of an artist's points a text."""
    _SAID[artist] = tuple(texts)


def hover_texts(artist: Artist) -> tuple[str, ...]:
    """The text of each of an artist's points; most artists have none."""
    return _SAID.get(artist, ())


def seed_texts(row: Row, part: str, label: str | None = None) -> list[str]:
    """The hover text of each of the seeds of `seeds_in`."""
    done = {seed: record for seed, record in row.records.items() if record.status == "done"}
    return [f"{label or row.label}, seed {seed}: {value:.3f}" for seed, value in scores(done, part).items()]


def mean_text(row: Row, part: str, label: str | None = None) -> str:
    """The hover text of a cell's mean."""
    spread = spread_in(row, part)
    return f"{label or row.label}: {mean_std(spread)}" + f", 95 % {interval(spread)}" * (spread.n >= LEAST_PAIRS)


def draw_seeds(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str, told: Sequence[str] = ()) -> None:
    """Small dots, darker where they cover each other; `told` are their hover texts."""
    (dots,) = axis.plot(xs, ys, "o", color=colour, alpha=0.45, markersize=3.4, markeredgewidth=0, zorder=2)
    set_hover_texts(dots, told)


def draw_lost(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
    """Crosses for diverged seeds."""
    axis.plot(xs, ys, "x", color=colour, markersize=5, markeredgewidth=1.4, zorder=3)


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
    """The place of each value along x: at its logarithm where the values span a ratio of `wide_from` or more."""
    wide = values[0] > 0 and values[-1] / values[0] >= wide_from
    return {value: log2(value) if wide else value for value in values}


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
        told = seed_texts(row, part, _point_text(label, row, part))
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
    set_hover_texts(
        bars[0], [mean_text(row, part, _point_text(label, row, part)) for row, part in scored if spread_in(row, part).n]
    )
    return [mean for _, mean, _ in known]


def _point_text(label: str, row: Row, part: str) -> str:
    """A line and a place on it in words."""
    names = list(dict.fromkeys(named(text) for text in (label, row.label)))
    return ", ".join([*names, *([named(part)] if part != ALL else [])])

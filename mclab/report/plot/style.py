"""All plots of accuracies share this module: colours, style, drawing of means and seeds, choice of panels, limits."""

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

#: Okabe and Ito's palette for all kinds of colour vision (without its yellow, which is too pale on white), and a grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
#: Markers, which distinguish lines in addition to their colours.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
#: The number of line styles.
MOST_DASHES = 4
GREY = "#666666"
#: Width of a figure in inches; a README shows it at about 100 dots per inch.
WIDTH = 8.4
#: The left edge of title, legend and foot, as a fraction of the width.
LEFT = 0.01
#: With more slices than this, only the task's own slices have panels; the plots by slice show the others.
MOST_PARTS = 11
#: An axis is logarithmic if its largest value is at least this many times its smallest.
LOG_FROM = 4
#: The width of a letter of a tick label, in inches.
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
    """Return the slices that get a panel: `ALL`, and each slice if some cell has several.

    If there are more than `MOST_PARTS` slices, return only `ALL` and the task's own slices, if these are few enough.
    """
    if not summary.has_slices:
        return (ALL,)
    if len(summary.slices) <= MOST_PARTS:
        return (ALL, *summary.slices)
    kept = [part for part in summary.slices if part not in summary.extras]
    return (ALL, *kept) if 1 < len(kept) <= MOST_PARTS else (ALL,)


def spread_in(row: Row, part: str) -> Spread:
    """Return mean, interval and range of a cell's accuracy on the slice `part`."""
    return row.accuracy if part == ALL else row.slices.get(part, Spread())


def seeds_in(row: Row, part: str) -> tuple[list[float], int]:
    """Return the accuracies of the finished seeds and the number of diverged seeds; [] and 0 without this slice."""
    if part != ALL and part not in row.slices:
        return [], 0
    done = {seed: record for seed, record in row.records.items() if record.status == "done"}
    lost = sum(record.status == "diverged" for record in row.records.values())
    return list(scores(done, part).values()), lost


def interval_arms(spread: Spread) -> tuple[float, float]:
    """Return the distances from the mean down and up to the ends of the interval, which is clipped to [0, 1].

    Both are 0 for one or two seeds: the t interval of two seeds is 12.7 standard errors wide on each side, and the
    seeds are drawn as dots anyway.
    """
    lo, hi = _ends(spread)
    if spread.mean is None or lo is None or hi is None:
        return 0.0, 0.0
    return max(0.0, spread.mean - lo), max(0.0, hi - spread.mean)


def _ends(spread: Spread) -> tuple[float | None, float | None]:
    """Return the ends of the drawn interval, clipped to [0, 1]; `None` for fewer than three seeds."""
    return (clip(spread.lo, 0.0), clip(spread.hi, 0.0)) if spread.n >= LEAST_PAIRS else (None, None)


def limits(summary: Summary, parts: Sequence[str] | None = None) -> tuple[float, float]:
    """Return the limits of the accuracy axis. All seeds and intervals on `parts` (by default `panels`) are within them.

    So is the baseline without recall of each row that is not above it. The limits are multiples of 0.1, at least 0.3
    apart, each moved outwards by 0.03 to leave room for the markers.
    """
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
    """Return the accuracy of the best predictor without recall on the slice `part`; `None` if it is unknown."""
    return row.without_recall.accuracy(part) if row.without_recall else None


def draw_without_recall(axis: Axes, series: Iterable[Sequence[tuple[float, float | None]]]) -> None:
    """Draw the baselines without recall dotted. `series` holds (place along x, level) pairs for each line.

    If all levels are equal, one line crosses the whole panel; otherwise each is drawn along its own line.
    """
    known = [tuple((at, level) for at, level in each if level is not None) for each in series]
    levels = {level for each in known for _, level in each}
    style: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": ":", "zorder": 1}
    if len(levels) == 1:
        axis.axhline(levels.pop(), **style)
        return
    for each in filter(None, dict.fromkeys(known)):
        axis.plot([at for at, _ in each], [level for _, level in each], **style)


#: The hover text of each point of a line. The page of `mclab report` shows it at the pointer.
_SAID: WeakKeyDictionary[Artist, tuple[str, ...]] = WeakKeyDictionary()


def set_hover_texts(artist: Artist, texts: Sequence[str]) -> None:
    """Set the hover text of each of the artist's points."""
    _SAID[artist] = tuple(texts)


def hover_texts(artist: Artist) -> tuple[str, ...]:
    """Return the hover text of each of the artist's points; empty if it has none."""
    return _SAID.get(artist, ())


def seed_texts(row: Row, part: str, label: str | None = None) -> list[str]:
    """Return a hover text for each seed whose accuracy `seeds_in` returns."""
    done = {seed: record for seed, record in row.records.items() if record.status == "done"}
    return [f"{label or row.label}, seed {seed}: {value:.3f}" for seed, value in scores(done, part).items()]


def mean_text(row: Row, part: str, label: str | None = None) -> str:
    """Return the hover text of a cell's mean."""
    spread = spread_in(row, part)
    return f"{label or row.label}: {mean_std(spread)}" + f", 95 % {interval(spread)}" * (spread.n >= LEAST_PAIRS)


def draw_seeds(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str, told: Sequence[str] = ()) -> None:
    """Draw seeds as small transparent dots, darker where they overlap; `told` are their hover texts."""
    (dots,) = axis.plot(xs, ys, "o", color=colour, alpha=0.45, markersize=3.4, markeredgewidth=0, zorder=2)
    set_hover_texts(dots, told)


def draw_lost(axis: Axes, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
    """Draw diverged seeds as crosses."""
    axis.plot(xs, ys, "x", color=colour, markersize=5, markeredgewidth=1.4, zorder=3)


def thinned(ticks: Mapping[float, str], inches: float) -> list[str]:
    """Return the labels of the ticks in a panel that is `inches` wide; a label that would overlap is replaced by "".

    The last label is always kept.
    """
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
    """Return {value: place along x}. The place is the value, or its logarithm to base 2 if the axis is logarithmic.

    It is logarithmic if the last value is at least `wide_from` times the first.
    """
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
    """Draw a line of means with intervals at the places `at`, and the seeds `aside` to the right of them.

    `style` holds the indices of colour and dash; `marker` is the index of the marker, by default that of the colour.
    `scored` has a cell and a slice for each place. Returns the means that are known.
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
    """Return the name of a point: the label of its line, the name of its row if that differs, and its slice."""
    names = list(dict.fromkeys(named(text) for text in (label, row.label)))
    return ", ".join([*names, *([named(part)] if part != ALL else [])])

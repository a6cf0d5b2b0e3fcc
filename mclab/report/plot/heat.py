"""Draw the heat map of needle-in-a-haystack tests: depth against length, with a panel for each row of the table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from mclab.config.strict import ConfigError
from mclab.report.plot.figure import sheet, side_by_side
from mclab.report.plot.layout import layout, named
from mclab.report.plot.slice_cells import Spot, families, groups, spots, values_along, varied
from mclab.report.plot.style import GREY, mean_text, set_hover_texts, spread_in
from mclab.report.table.summary import Summary
from mclab.report.text import is_number, value_text

ACROSS, DOWN = "length", "depth"
#: From dark blue to yellow in even steps of lightness; suited to all kinds of colour vision.
COLOUR_MAP = "cividis"
#: A mean below this is written in the colour `PALE`, since its background is dark.
DARK = 0.5
#: The colours of numbers on a light and on a dark background; an HTML page does not change them.
INK, PALE = "#111111", "#FEFEFE"
MOST_PANELS = 24
#: Numbers are written if a pair of values has at least this width, in inches.
LEAST_CELL = 0.3
CELL_HEIGHT = 0.27


@dataclass(frozen=True)
class Panel:
    """A panel: its title, and the spot at each pair of values (down, across), where values are texts."""

    title: str
    cells: dict[tuple[str, str], Spot]


@dataclass(frozen=True)
class Map:
    """A heat map: the keys along the two axes, their values `ys` and `xs` in ascending order, and the panels."""

    down: str
    across: str
    ys: list[Any]
    xs: list[Any]
    panels: list[Panel]


def heat_map(summary: Summary) -> Map | None:
    """Return the map of depth by length. Without a depth, another numeric key in which slices differ takes its place.

    `None` if the slices do not fill a grid of two keys.
    """
    found = spots(summary)
    keys = [key for key in varied(found) if all(is_number(spot.at.get(key, 0)) for spot in found)]
    if ACROSS not in keys and f"task.{ACROSS}" in summary.plan.axes:
        keys.append(ACROSS)
    if ACROSS not in keys or len(keys) < 2:
        return None
    down = DOWN if DOWN in keys else next(key for key in keys if key != ACROSS)
    shown = [spot for spot in found if down in spot.at]
    made = Map(
        down, ACROSS, values_along(shown, down), values_along(shown, ACROSS), list(_panels(summary, shown, down))
    )
    filled = max((len(panel.cells) for panel in made.panels), default=0)
    return made if 2 * filled >= len(made.xs) * len(made.ys) and min(len(made.xs), len(made.ys)) > 1 else None


def _panels(summary: Summary, found: Sequence[Spot], down: str) -> Iterator[Panel]:
    for group in groups(summary, found, [ACROSS]):
        for family, own in families(group.spots, [down, ACROSS]).items():
            cells = {(value_text(spot.at[down]), value_text(spot.at[ACROSS])): spot for spot in own}
            yield Panel(", ".join(part for part in (group.label, family) if part), cells)


def heat_figure(summary: Summary) -> Figure:
    """Draw the mean over seeds at every pair of values, in colours from 0 to 1.

    Raises `ConfigError` if the slices do not fill a grid of two keys.
    """
    drawn = heat_map(summary)
    if drawn is None:
        raise ConfigError(
            f"heat: the slices are no grid of {DOWN} (or another number) by {ACROSS}; "
            f"e.g. eval.task: {{{ACROSS}: [128, 256]}} adds lengths"
        )
    shown = drawn.panels[:MOST_PANELS]
    beside = side_by_side(len(shown), 3 if len(drawn.xs) <= 5 else 2 if len(drawn.xs) <= 9 else 1)
    height = 0.85 + CELL_HEIGHT * max(3, len(drawn.ys))
    titles = [named(panel.title) for panel in shown]
    page = sheet(summary, height, 0, titles, _caption(summary, drawn), beside, dotted=False)
    for place, (axes, panel) in enumerate(zip(page.panels, shown, strict=True)):
        image = _panel(axes, drawn, panel, layout().width / 1.2 / page.across / len(drawn.xs))
        if place % page.across == 0:
            axes.set_ylabel(named(drawn.down))
        if page.lowest(place):
            axes.set_xlabel(named(drawn.across))
            axes.tick_params(labelbottom=True)
    if len(shown) == 1:
        page.panels[0].set_title(named(shown[0].title))
    page.figure.colorbar(image, ax=page.panels, label="test accuracy", shrink=0.9, aspect=24, pad=0.02)
    return page.figure


def _caption(summary: Summary, drawn: Map) -> str:
    counts = sorted({row.accuracy.n for row in summary.rows})
    n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    words = [f"Each cell is the mean over seeds, n = {n}; a diverged run counts as 0."]
    trained = {row.run.task.length for row in summary.rows if not row.run.train.task}
    if len(trained) == 1:
        words.append(f"Trained at length {trained.pop()}.")
    if (left := len(drawn.panels) - MOST_PANELS) > 0:
        words.append(f"{left} more rows are not drawn.")
    if any(len(panel.cells) < len(drawn.xs) * len(drawn.ys) for panel in drawn.panels):
        words.append("Grey: not scored there.")
    return " ".join(words)


def _panel(axes: Axes, drawn: Map, panel: Panel, cell: float) -> AxesImage:
    ys, xs = [value_text(y) for y in drawn.ys], [value_text(x) for x in drawn.xs]
    means = [[_mean(panel, y, x) for x in xs] for y in ys]
    axes.set_facecolor("#D9D9D9")
    numbers = [[float("nan") if mean is None else mean for mean in line] for line in means]
    image = axes.imshow(numbers, cmap=COLOUR_MAP, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    axes.set_xticks(range(len(xs)), xs, rotation=0 if cell > 0.09 * max(map(len, xs)) else 90)
    axes.set_yticks(range(len(ys)), ys)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, edgecolor=GREY, linewidth=0.6)
    known = [(x, y, spot) for (down, over), spot in panel.cells.items() for x, y in [(xs.index(over), ys.index(down))]]
    (points,) = axes.plot([x for x, _, _ in known], [y for _, y, _ in known], "s", markersize=12, alpha=0)
    set_hover_texts(points, [mean_text(spot.row, spot.part, f"{panel.title}, {spot.part}") for _, _, spot in known])
    if cell >= LEAST_CELL * layout().number / 7.5:
        _numbers(axes, means)
    return image


def _mean(panel: Panel, y: str, x: str) -> float | None:
    spot = panel.cells.get((y, x))
    return spread_in(spot.row, spot.part).mean if spot else None


def _numbers(axes: Axes, means: Sequence[Sequence[float | None]]) -> None:
    for y, line in enumerate(means):
        for x, mean in enumerate(line):
            if mean is not None:
                colour = PALE if mean < DARK else INK
                axes.text(x, y, f"{mean:.2f}", ha="center", va="center", fontsize=layout().number, color=colour)

"""Draw a gate's weights: a panel for each head, a row for each query, a column for each segment."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from mclab.report.characters import Strip
from mclab.report.plot.style import COLOURS, GREY, STYLE, WIDTH

#: The most rows of a panel; the caption says how many further queries there are.
MOST_ROWS = 48
#: Heights in inches: of a row, and of the space above and below the panels.
ROW, ABOVE, BELOW = 0.17, 0.75, 0.75
#: The left edge of title and foot, as a fraction of the width.
LEFT = 0.01
MOST_ACROSS = 4
#: From light to dark blue; darker means a larger weight.
COLOUR_MAP = "Blues"
RIGHT, WRONG, HELD = "black", COLOURS[1], COLOURS[1]


@dataclass(frozen=True)
class GatePanel:
    """The panel of one head: its title, and the weights with which the head reads, for each query."""

    title: str
    strips: Sequence[Strip]


def gate_figure(title: str, labels: Sequence[str], right: Sequence[bool], panels: Sequence[GatePanel]) -> Figure:
    """Draw the absolute weights in colours from 0 to 1.

    Segments that hold what the query needs are outlined; segments that it does not see are grey. `labels` and `right`
    (whether the answer is right) are those of the queries, in every panel. The label of a wrong answer is coloured.
    """
    rows = min(len(labels), MOST_ROWS)
    across = min(MOST_ACROSS, len(panels))
    down = -(-len(panels) // across)
    height = ABOVE + BELOW + down * (0.35 + ROW * max(4, rows))
    figure = Figure(figsize=(WIDTH, height))
    figure.set_layout_engine("constrained", rect=(0, 0.3 / height, 1, 1 - 0.65 / height))
    figure.text(LEFT, 1 - 0.08 / height, title, va="top", fontsize=11.5, fontweight="bold")
    figure.text(LEFT, 0.08 / height, _caption(len(labels) - rows), va="bottom", fontsize=8, color=GREY)
    grid = [axes for line in figure.subplots(down, across, squeeze=False, sharey=True, sharex=True) for axes in line]
    for spare in grid[len(panels) :]:
        spare.set_visible(False)
    for axes, panel in zip(grid, panels, strict=False):
        image = _panel(axes, panel, rows)
    _labels(grid[::across], labels[:rows], right)
    figure.colorbar(image, ax=grid, label="gate's weight", shrink=min(1.0, 3 / (ROW * rows * down)), pad=0.02)
    return figure


def gate_map(title: str, labels: Sequence[str], right: Sequence[bool], panels: Sequence[GatePanel], form: str) -> bytes:
    """Return the figure as the content of a file in the format `form` (png, svg or pdf).

    It does not depend on the user's matplotlibrc and needs no display.
    """
    buffer = BytesIO()
    with matplotlib.style.context(["default", STYLE]):
        gate_figure(title, labels, right, panels).savefig(buffer, format=form)
    return buffer.getvalue()


def _caption(left_out: int) -> str:
    more = f" The first {MOST_ROWS} queries; {left_out} more are not drawn." if left_out else ""
    return f"Outlined: the memory that holds what the query needs; grey: none there; coloured label: wrong.{more}"


def _panel(axes: Axes, panel: GatePanel, rows: int) -> AxesImage:
    strips = panel.strips[:rows]
    axes.set_facecolor("#D9D9D9")
    weights = [
        [abs(weight) if place < strip.visible else float("nan") for place, weight in enumerate(strip.weights)]
        for strip in strips
    ]
    image = axes.imshow(weights, cmap=COLOUR_MAP, vmin=0.0, vmax=1.0, aspect="auto", interpolation="none")
    for y, strip in enumerate(strips):
        for x in strip.held:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=HELD, linewidth=1.4, zorder=3))
    axes.set_title(panel.title)
    axes.set_xlabel("memory, oldest first")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return image


def _labels(first: Sequence[Axes], labels: Sequence[str], right: Sequence[bool]) -> None:
    """Label the rows of the leftmost panels `first`, and colour the labels of queries whose answer was not `right`."""
    for axes in first:
        axes.set_yticks(range(len(labels)), labels, fontsize=7.5)
        for tick, fine in zip(axes.get_yticklabels(), right, strict=False):
            tick.set_color(RIGHT if fine else WRONG)

"""Draw accuracy against state size, which shows how much state a row needs for its accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.strict import ConfigError
from mclab.report.plot.figure import legend, legend_columns, seeds_caption, sheet, wrapped_label
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import (
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    MOST_DASHES,
    draw_line,
    limits,
    panels,
    spread_in,
    thinned,
)
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import cut_middle, full_label, is_number, plain, value_text

#: The number of pairs of colour and dash, and so the largest number of lines in a figure.
MOST_LINES = len(COLOURS) * MOST_DASHES
#: How far to the right of its mean the seeds of a row are drawn, in doublings of the state.
ASIDE = 0.06
#: A point of the Pareto front gets its row's name if its accuracy exceeds that of the last named point by this much.
RISE = 0.05
#: The most letters of a name on the Pareto front.
LONGEST = 22
#: The caption of the broad grey line.
FRONT = "Grey: the Pareto front, that is the rows that no row with as little state beats."


@dataclass(frozen=True)
class Path:
    """A line of the figure: rows that differ only in one numeric key, in the order of their state sizes."""

    label: str
    rows: tuple[Row, ...]


def state_of(row: Row) -> int | None:
    """Return the state size in floats, fixed and cached together; `None` if no record has it."""
    fixed, cached = row.state_fixed, row.state_cached
    return None if fixed is None or cached is None else fixed + cached


def state_figure(summary: Summary) -> Figure:
    """Draw a panel for each slice, with a line for each of `paths` and the state size on a logarithmic axis.

    Raises `ConfigError` if there are fewer than two state sizes or too many lines.
    """
    found = paths(summary)
    sizes = [size for path in found for row in path.rows if (size := state_of(row))]
    if len(set(sizes)) < 2:
        raise ConfigError("state: the plot needs two rows whose finished runs have states of different sizes")
    if len(found) > MOST_LINES:
        raise ConfigError(f"state: the plot would have {len(found)} lines, but at most {MOST_LINES} can be told apart")
    across = legend_columns([named(path.label) for path in found])
    caption = f"{seeds_caption(summary)} {FRONT}" if len(found) > 1 else None
    height = 2.8 if summary.has_slices else 3.4
    page = sheet(summary, height, -(-len(found) // across), caption=caption, across=2, dotted=False)
    ticks = {float(power): _tick(power) for power in range(floor(log2(min(sizes))), ceil(log2(max(sizes))) + 1)}
    for place, (panel, part) in enumerate(zip(page.panels, panels(summary), strict=True)):
        _panel(panel, found, part, ticks, page.across)
        panel.set_ylim(*limits(summary))
        if place % page.across == 0:
            panel.set_ylabel("test accuracy")
        if page.lowest(place):
            panel.set_xlabel(wrapped_label("state size (floats), fixed and cached", page.across))
            panel.tick_params(labelbottom=True)
    legend(page, across)
    return page.figure


def paths(summary: Summary) -> list[Path]:
    """Return the lines of the figure. Rows of a line differ only in the key that `_along` returns.

    Rows without a known state size are left out.
    """
    along = _along(summary)
    names = {path: name for path, name in summary.names.items() if path in summary.plan.axes and path != along}
    gathered: dict[str, list[Row]] = {}
    for row in summary.rows:
        if state_of(row):
            told = {path: value for path, value in row.values.items() if path != along}
            name = row.label if summary.plan.named else full_label(told, names) or row.label
            gathered.setdefault(name, []).append(row)
    return [Path(name, tuple(sorted(rows, key=lambda row: state_of(row) or 0))) for name, rows in gathered.items()]


def _along(summary: Summary) -> str | None:
    """Return the path of the numeric key with the most values; `None` without one. Rows of a line differ in it."""
    counts: dict[str, int] = {}
    for path in summary.plan.axes:
        known = [row.values[path] for row in summary.rows if path in row.values]
        if known and all(map(is_number, known)):
            counts[path] = len({value_text(plain(value)) for value in known})
    best = max(counts, key=lambda path: counts[path], default=None)
    return best if best is not None and counts[best] > 1 else None


def styles(found: Sequence[Path]) -> list[tuple[int, int, int]]:
    """Return colour, dash and marker of each line, as indices into their palettes.

    Lines of one family (see `_family`) share a colour and differ in dash and marker. Families are ignored, and every
    line takes the next colour, in each of these cases: there is only one family; every family has one line; there are
    more families than colours; a family has more lines than there are markers. When all colours are used they repeat
    with another dash.
    """
    families = [_family(path.rows[0]) for path in found]
    names = list(dict.fromkeys(families))
    most = max(map(families.count, names), default=0)
    if not 1 < len(names) <= len(COLOURS) or most == 1 or most > len(MARKERS):
        return [(number % len(COLOURS), number // len(COLOURS), number % len(COLOURS)) for number in range(len(found))]
    members = [families[:number].count(family) for number, family in enumerate(families)]
    return [
        (names.index(family), member % len(DASHES), (names.index(family) + member) % len(MARKERS))
        for family, member in zip(families, members, strict=True)
    ]


def _family(row: Row) -> str:
    """Return the family of a row: the memory or update rule of its first layer, else the name of its mixer."""
    first = row.run.model.pattern[0] if row.run.model.pattern else row.run.model.mixer
    if isinstance(first, str):
        return first.partition("/")[0]
    own = (getattr(first, key, None) for key in ("memory", "rule", "name"))
    return str(next((word for word in own if word), ""))


def front(found: Sequence[Path], part: str) -> list[tuple[float, float, Path]]:
    """Return the Pareto front: each row that is more accurate than all rows with at most as much state.

    Each item is (state size, accuracy, line). They are in the order of the state sizes.
    """
    points = [
        (float(size), mean, path)
        for path in found
        for row in path.rows
        if (size := state_of(row)) and (mean := spread_in(row, part).mean) is not None
    ]
    kept: list[tuple[float, float, Path]] = []
    for point in sorted(points, key=lambda each: (each[0], -each[1])):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept


def _draw_front(panel: Axes, found: Sequence[Path], part: str) -> None:
    """Draw the Pareto front (accuracy against state size) as a broad grey step line.

    At a step of at least `RISE` the row that causes it is named. Each name is written once.
    """
    points = front(found, part)
    xs, ys = [log2(size) for size, _, _ in points], [mean for _, mean, _ in points]
    panel.plot(xs, ys, color=GREY, alpha=0.22, linewidth=6, drawstyle="steps-post", zorder=0.5)
    named_already, last = set[str](), -1.0
    middle = fmean(log2(size) for path in found for row in path.rows if (size := state_of(row)))
    for x, y, (_, _, path) in zip(xs, ys, points, strict=True):
        if path.label not in named_already and y - last >= RISE:
            left = x < middle
            text = panel.annotate(
                cut_middle(named(path.label), LONGEST),
                (x, y),
                (3 if left else -3, 5),
                textcoords="offset points",
                ha="left" if left else "right",
                fontsize=layout().number,
            )
            text.set_in_layout(False)  # a long name must not make the panel narrower
            named_already.add(path.label)
            last = y


def _panel(panel: Axes, found: Sequence[Path], part: str, ticks: Mapping[float, str], across: int) -> None:
    if len(found) > 1:
        _draw_front(panel, found, part)
    for path, (colour, dash, marker) in zip(found, styles(found), strict=True):
        at = [log2(state_of(row) or 1) for row in path.rows]
        draw_line(panel, path.label, (colour, dash), at, [(row, part) for row in path.rows], ASIDE, marker)
    panel.set_xticks(list(ticks), thinned(ticks, 0.9 * layout().width / across))
    panel.yaxis.set_major_formatter("{x:g}")


def _tick(power: int) -> str:
    """Return 2 ** `power` as a tick label such as 256, 4k or 2M, where k is 1024."""
    unit = min(power // 10, 3)
    return f"{2 ** (power - 10 * unit):g}{('', 'k', 'M', 'G')[unit]}"

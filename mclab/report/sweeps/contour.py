"""Draw the two most important axes together: the mean of the objective for each pair of their values."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from mclab.report.plot.figure import page
from mclab.report.plot.heat import COLOUR_MAP, INK, PALE
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import GREY
from mclab.report.sweeps.levels import level_at
from mclab.report.sweeps.study import Ranked, Study, metric_text

#: The height in inches of the box for one pair of values.
CELL = 0.36
#: Width of a letter in inches.
LETTER = 0.085


def contour_axes(study: Study) -> tuple[Ranked, Ranked] | None:
    """Return the two most important axes that have results at two values or more; `None` if there are not two."""
    seen = [each for each in study.ranked if each.filled > 1]
    return (seen[0], seen[1]) if len(seen) > 1 else None


def contour_figure(study: Study) -> Figure:
    """Draw the mean of the first objective and the number of trials for each pair of values.

    `contour_axes(study)` must not be `None`.
    """
    axes = contour_axes(study)
    assert axes is not None
    across, down = axes if len(axes[0].levels) >= len(axes[1].levels) else axes[::-1]
    cells = _cells(study, across, down)
    name = study.measured(study.found.objectives[0])
    foot = (
        f"Each cell: the mean of {name} over its trials, whatever their other axes are, and their number. Grey: no "
        f"trial. Trials where one of the two does not exist or changes nothing are left out."
    )
    ys, xs = (_labels(each) for each in (down, across))
    sheet = page(study.title, foot, 0.9 + CELL * max(3, len(ys)), [""])
    image = _draw(sheet.panels[0], study, cells, xs, ys)
    sheet.panels[0].set_xlabel(named(across.name))
    sheet.panels[0].set_ylabel(named(down.name))
    sheet.figure.colorbar(image, ax=sheet.panels, label=name, shrink=0.9, aspect=24, pad=0.02)
    return sheet.figure


def _labels(each: Ranked) -> list[str]:
    return [level.label for level in each.levels if level.there]


def _cells(study: Study, across: Ranked, down: Ranked) -> dict[tuple[str, str], list[float]]:
    cells = defaultdict[tuple[str, str], list[float]](list)
    for trial in study.judged.trials:
        y, x = level_at(down.axis, trial), level_at(across.axis, trial)
        if y is not None and x is not None and trial.values is not None:
            cells[y, x].append(trial.values[0])
    return dict(cells)


def _draw(
    axes: Axes, study: Study, cells: Mapping[tuple[str, str], list[float]], xs: list[str], ys: list[str]
) -> AxesImage:
    means = [[fmean(cells[y, x]) if (y, x) in cells else float("nan") for x in xs] for y in ys]
    axes.set_facecolor("#D9D9D9")
    image = axes.imshow(means, cmap=COLOUR_MAP, aspect="auto", interpolation="none")
    cell = layout().width / 1.6 / max(1, len(xs))
    axes.set_xticks(range(len(xs)), xs, rotation=0 if cell > LETTER * layout().scale * max(map(len, xs)) else 90)
    axes.set_yticks(range(len(ys)), ys)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, edgecolor=GREY, linewidth=0.6)
    known = [mean for line in means for mean in line if mean == mean]
    middle = (min(known) + max(known)) / 2 if known else 0.0
    for (y, x), values in cells.items():
        mean = fmean(values)
        text = metric_text(study.found.objectives[0].metric, mean)
        full = f"{text} ({len(values)})"
        text = full if cell > LETTER * layout().number / 7.5 * len(full) else text
        colour = PALE if mean < middle else INK
        axes.text(xs.index(x), ys.index(y), text, ha="center", va="center", fontsize=layout().number, color=colour)
    return image

"""Draw the figures of a study and write their files. It is the only module that a caller of these plots needs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from mclab.plan.space_trials import Objective, Trial, Trials
from mclab.report.plot.figure import page
from mclab.report.plot.kinds import METADATA, drawn
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import COLOURS, GREY, draw_seeds, set_hover_texts
from mclab.report.stats import LEAST_PAIRS
from mclab.report.sweeps.contour import contour_axes, contour_figure
from mclab.report.sweeps.levels import Level
from mclab.report.sweeps.study import Ranked, Study, clipped, metric_name, metric_text
from mclab.report.table.export import write_files
from mclab.report.text import cut

#: Height of a row in inches.
ROW = 0.24
LONGEST = 24
#: An axis of positive numbers is logarithmic if its largest value is at least this many times the smallest.
WIDE = 4
#: The largest height in inches. Further levels make rows overlap, since no program opens a larger image.
TALLEST = 80.0


def write_plots(found: Trials, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `importances`, `marginals`, `contour` and, for two objectives, `front` into `folder`; return the paths.

    A figure that has nothing to show is not written (see `figures_of`). No display is needed. Raises `ValueError` for
    formats other than png, svg and pdf.
    """
    if unknown := [form for form in formats if form not in METADATA]:
        raise ValueError(f"format: {unknown[0]} is not one of {', '.join(METADATA)}")
    figures = figures_of(Study(found))
    return write_files(
        folder, {f"{name}.{form}": drawn(draw, form) for name, draw in figures.items() for form in formats}
    )


def figures_of(study: Study) -> dict[str, Callable[[], Figure]]:
    """Return {name: function that draws the figure}, without figures that have nothing to show.

    `importances` needs a known importance, `marginals` a finished trial, `contour` two axes that each have results at
    two values or more, and `front` a finished trial and two objectives.
    """
    figures: dict[str, Callable[[], Figure]] = {}
    if study.weighed:
        figures["importances"] = lambda: importances_figure(study)
    if study.found.done:
        figures["marginals"] = lambda: marginals_figure(study)
        if study.judged.trials and contour_axes(study):
            figures["contour"] = lambda: contour_figure(study)
        if study.several:
            figures["front"] = lambda: front_figure(study)
    return figures


def importances_figure(study: Study) -> Figure:
    """Draw a bar for the importance of each axis, in a panel for each objective."""
    titles = [metric_name(objective.metric) for objective in study.found.objectives]
    foot = f"{study.method} {study.rests_on}"
    sheet = page(study.title, foot, 0.6 + ROW * max(2, len(study.ranked)), titles)
    most = max(0.1, *(share or 0.0 for each in study.ranked for share in each.shares))
    most = max(most, *(doubt.hi if doubt else 0.0 for each in study.ranked for doubt in each.doubt), 0.0)
    for place, axes in enumerate(sheet.panels):
        shares = [each.shares[place] or 0.0 for each in study.ranked]
        axes.barh(range(len(shares)), shares, height=0.62, color=COLOURS[0])
        ends = [_interval(axes, row, each, place) or shares[row] for row, each in enumerate(study.ranked)]
        for row, share in enumerate(shares):
            axes.text(ends[row] + 0.01, row, f"{share:.2f}", va="center", fontsize=layout().foot, color=GREY)
        axes.set_xlim(0, 1.12 * most)  # the panels share the x axis
        axes.set_xlabel(f"importance for {titles[place]}")
        _rows(axes, [named(each.name) for each in study.ranked])
    return sheet.figure


def _interval(axes: Axes, row: int, each: Ranked, place: int) -> float | None:
    """Draw the interval of an importance as a line over its bar.

    Returns the right end of what is drawn; `None` if there is no interval.
    """
    doubt = each.doubt[place] if each.doubt else None
    if doubt is None:
        return None
    axes.plot([doubt.lo, doubt.hi], [row, row], color="black", linewidth=1.1)
    return max(doubt.hi, each.shares[place] or 0.0)


def marginals_figure(study: Study) -> Figure:
    """Draw a row for each value of each axis: the mean with its interval, and every trial as a dot.

    The most important axis is on top.
    """
    titles = [metric_name(objective.metric) for objective in study.found.objectives]
    rows: list[Ranked | Level] = []
    for each in study.ranked:
        rows += [each, *each.levels]
    foot = (
        "Mean over the trials with that value, whatever their other axes are, with its 95 % t interval (cut at the "
        "edge; none of one or two trials); each small dot is a trial. –: the axis does not exist there or changes "
        "nothing. Dashed: mean of all."
    )
    sheet = page(study.title, foot, 0.6 + min(ROW * max(4, len(rows)), TALLEST), titles, share=False)
    for place, axes in enumerate(sheet.panels):
        _marginals(axes, study, rows, place)
        axes.set_xlabel(study.measured(study.found.objectives[place]))
        if place:
            axes.tick_params(labelleft=False)
    return sheet.figure


def _marginals(axes: Axes, study: Study, rows: Sequence[Ranked | Level], place: int) -> None:
    every = _values(study.judged.trials, place)
    axes.axvline(sum(every) / len(every), color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axis = -1
    for at, row in enumerate(rows):
        if isinstance(row, Ranked):
            axis += 1
        else:
            _level(axes, study.found.objectives[place], row, at, COLOURS[axis % 2] if row.there else GREY, place)
    _scale(axes, every)
    _rows(axes, [named(row.name if isinstance(row, Ranked) else cut(row.label, LONGEST)) for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if isinstance(row, Ranked) else "normal")


def _level(axes: Axes, objective: Objective, level: Level, at: int, colour: str, place: int) -> None:
    values, spread = _values(level.trials, place), level.objective(place)
    told = [_trial_text(trial, objective.metric, place) for trial in level.trials if trial.values is not None]
    draw_seeds(axes, values, [at + 0.2] * len(values), colour, told)
    if spread.mean is None:
        return
    low, high = clipped(objective, spread.lo), clipped(objective, spread.hi)
    arms = [[0.0 if end is None else abs(spread.mean - end)] for end in (low, high)]
    x, y = [spread.mean], [at - 0.1]
    if spread.n < LEAST_PAIRS:
        arms = [[0.0], [0.0]]
    bars = axes.errorbar(x, y, xerr=arms, fmt="o", color=colour, markersize=4.6, elinewidth=1.1, capsize=2)
    set_hover_texts(bars[0], [f"{level.label}: {metric_text(objective.metric, spread.mean)} ({spread.n} trials)"])


def _trial_text(trial: Trial, metric: str, place: int) -> str:
    assert trial.values is not None
    return f"trial {trial.number}: {metric_text(metric, trial.values[place])}"


def _values(trials: Sequence[Trial], place: int) -> list[float]:
    return [trial.values[place] for trial in trials if trial.values is not None]


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Set the limits of x a little beyond the values; the axis is logarithmic if the values have a wide range."""
    low, high = min(values), max(values)
    if _wide(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(low / 1.2, high * 1.2)
    else:
        room = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.set_xlim(low - room, high + room)
    axes.xaxis.set_major_formatter("{x:,.0f}" if high >= 1000 else "{x:g}")


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def front_figure(study: Study) -> Figure:
    """Draw every trial by both objectives. The trials of the Pareto front are joined and have their numbers."""
    first, second = study.found.objectives
    front = study.found.front()
    foot = (
        f"Each dot is a trial that is done ({len(study.found.done)} distinct); joined, with their numbers: the "
        f"{len(front)} that no other trial beats in one objective without losing in the other."
    )
    sheet = page(study.title, foot, 3.6, [""])
    axes = sheet.panels[0]
    (dots,) = axes.plot(*_points(study.found.done), "o", color=GREY, alpha=0.5, markersize=4, markeredgewidth=0)
    ordered = sorted(study.found.done, key=lambda trial: (trial.values or ())[::-1])
    metrics = first.metric, second.metric
    set_hover_texts(
        dots, [", ".join(_trial_text(trial, metrics[place], place) for place in (0, 1)) for trial in ordered]
    )
    where = "steps-post" if second.direction == "minimize" else "steps-pre"
    axes.plot(*_points(front), "o", color=COLOURS[0], markersize=5.5, linestyle="-", linewidth=1.2, drawstyle=where)
    for place in sorted({trial.values for trial in front if trial.values}):
        same = ", ".join(str(trial.number) for trial in front if trial.values == place)
        axes.annotate(same, (place[1], place[0]), xytext=(4, 5), textcoords="offset points", fontsize=layout().foot)
    _scale(axes, _values(study.found.done, 1))
    axes.set_xlabel(f"{metric_name(second.metric)} ({_better(second.direction)})")
    axes.set_ylabel(f"{metric_name(first.metric)} ({_better(first.direction)})")
    return sheet.figure


def _points(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    """Return the values of the second objective and those of the first, sorted by the second."""
    pairs = sorted(zip(_values(trials, 1), _values(trials, 0), strict=True))
    return [x for x, _ in pairs], [y for _, y in pairs]


def _better(direction: str) -> str:
    return "more is better" if direction == "maximize" else "less is better"


def _wide(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 1 and max(values) / min(values) >= WIDE

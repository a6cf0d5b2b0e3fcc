"""Draw the effects of a whole grid: points with intervals, first the main effects, then the interactions."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mclab.config.strict import ConfigError
from mclab.report.plot.figure import page
from mclab.report.plot.layout import layout, named
from mclab.report.plot.style import COLOURS, GREY, draw_seeds, set_hover_texts
from mclab.report.stats import ALPHA
from mclab.report.table.effects import Effect, effects, most_telling
from mclab.report.table.summary import Summary
from mclab.report.text import clip, cut, signed, signed_interval

#: Height of a row in inches.
ROW = 0.26
LONGEST = 48


def effects_figure(summary: Summary) -> Figure:
    """Draw the mean of each effect with its interval, and every seed as a small dot.

    The mean is a filled point if the effect is significant and none of its cells has a mark (`Effect.apart`), else a
    hollow one. Raises `ConfigError` if there are no effects.
    """
    every = effects(summary)
    if not every:
        raise ConfigError(
            "effects: nothing can be drawn; effects need a grid of two or more axes, each with two levels whose cells "
            "have results"
        )
    found = most_telling(every)
    left = f" {len(every) - len(found)} further interactions are in effects.csv." * (len(found) < len(every))
    foot = (
        f"Mean over seeds with 95 % t interval; each small dot is a seed; filled: Holm p < {ALPHA} over all "
        f"{len(every)} effects, no cell to mend. Blue: a level minus the baseline's, averaged over the other axes. "
        f"Orange: how much one difference changes with the other axis (difference of differences).{left}"
    )
    sheet = page(summary.plan.question or summary.plan.name, foot, 0.7 + ROW * max(3, len(found)), [""])
    axes = sheet.panels[0]
    axes.axvline(0, color=GREY, linewidth=0.9, zorder=1)
    for row, effect in enumerate(found):
        _draw(axes, effect, row)
    axes.set_yticks(range(len(found)), [cut(named(_label(effect)), layout().letters(LONGEST)) for effect in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("difference in test accuracy")
    return sheet.figure


def _label(effect: Effect) -> str:
    """Return the label of an effect: `gate: input − context` for a main effect, the name for an interaction."""
    if effect.main:
        return f"{effect.factors[0].name}: {effect.levels[0]} − {effect.factors[0].levels[0]}"
    return effect.name


def _draw(axes: Axes, effect: Effect, row: int) -> None:
    colour, gap = COLOURS[0 if effect.main else 1], effect.difference
    told = [f"{_label(effect)}, seed {seed}: {signed(value)}" for seed, value in effect.by_seed.items()]
    draw_seeds(axes, list(effect.by_seed.values()), [row + 0.2] * len(effect.by_seed), colour, told)
    if gap.mean is None:
        return
    arms = [[0.0 if (end := clip(each, -1.0)) is None else abs(gap.mean - end)] for each in (gap.lo, gap.hi)]
    fill = colour if effect.apart else "white"
    x, y = [gap.mean], [row - 0.08]
    bars = axes.errorbar(
        x, y, xerr=arms, fmt="o", color=colour, markerfacecolor=fill, markersize=5, elinewidth=1.1, capsize=2
    )
    set_hover_texts(bars[0], [f"{_label(effect)}: {signed(gap.mean)} {signed_interval(gap)}"])

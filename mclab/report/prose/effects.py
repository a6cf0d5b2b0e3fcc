"""Write sentences on the effects of a whole grid: which of them differ from 0, and how to read their table."""

from collections.abc import Iterator, Sequence

from mclab.report.table.effects import Effect, Factor, grid_of
from mclab.report.table.summary import Summary
from mclab.report.text import listed, p_text, signed_interval

READING = (
    "difference: a level minus the baseline's level of the same axis, seed by seed, averaged over the cells of the "
    "other axes (pairs: how many); ×: how much one axis's difference changes with the other's level, difference of "
    "differences. 95 % t interval; p: paired t test over seeds, Holm over all effects."
)


def effect_sentences(found: Sequence[Effect]) -> Iterator[str]:
    """Yield sentences on the effects that significantly differ from 0, and on the effects without a clear result."""
    apart = [effect for effect in found if effect.apart]
    for effect in apart:
        gap = effect.difference
        size, interval = f"{abs(gap.mean or 0.0):.3f}", f"95 % interval {signed_interval(gap)}, Holm p {_p(effect)}"
        if effect.main:
            side = "above" if (gap.mean or 0.0) > 0 else "below"
            yield f"On average over the other axes {effect.name} is {size} {side} {effect.reference} ({interval})."
        else:
            first, second = effect.factors
            way = "higher" if (gap.mean or 0.0) > 0 else "lower"
            yield (
                f"{first.name} and {second.name} go together: the difference of {effect.levels[0]} to "
                f"{first.levels[0]} is {size} {way} with {second.name} {effect.levels[1]} than with "
                f"{second.levels[0]} ({interval})."
            )
    marked = sum(effect.unmended > 0 for effect in found)
    if marked:
        yield f"No verdict on {marked} of {len(found)} effects: they are computed from cells that must be mended first."
    joint = [effect for effect in found if not effect.main]
    if joint and not any(effect in apart or effect.unmended for effect in joint):
        yield f"No interaction can be told from none ({listed(list(dict.fromkeys(e.axes for e in joint)))})."


def _p(effect: Effect) -> str:
    text = p_text(effect.p)
    return text if text.startswith("<") else f"= {text}"


def how_to_read_effects(summary: Summary) -> list[str]:
    """Return sentences on which cells are the same run, and on how to read the table of effects."""
    lines = [*same_runs(summary), READING]
    if summary.plan.until:
        lines.append(
            "The looks were planned for rows, not for effects: these are over the seeds that all their cells have, and "
            "their p is not corrected for looking."
        )
    return lines


def same_runs(summary: Summary) -> list[str]:
    """Return sentences on axes without effect in some rows, so that several cells are the same run."""
    grid = grid_of(summary)
    if grid is None:
        return []
    of: dict[tuple[Factor, ...], list[str]] = {}
    for row, lacking in grid.idle:
        of.setdefault(lacking, []).append(row.in_text)
    lines = []
    for lacking, rows in of.items():
        change = "changes" if len(lacking) == 1 else "change"
        names = " and ".join(factor.name for factor in lacking)
        lines.append(f"{names} {change} nothing in {_some_of(rows)}: all values give the same run.")
    return lines


def _some_of(rows: Sequence[str], most: int = 6) -> str:
    shown = "; ".join(rows[:most])
    return shown if len(rows) <= most else f"{shown} and {len(rows) - most} more"

"""Effects of a whole grid as people and programs read them: a table, sentences, a frame, a page."""

from collections.abc import Iterator, Sequence

import polars as pl

from mclab.report.align import NOTHING
from mclab.report.names import listed
from mclab.report.table.columns import Shown, p_text, signed, signed_interval
from mclab.report.table.effects import Effect, same_runs
from mclab.report.table.frames import Column, clip, series
from mclab.report.table.summary import Summary

#: Effects of a table at a terminal.
MOST_SHOWN = 30
READING = (
    "difference: a level less the baseline's level of the same axis, seed by seed, averaged over the cells of the "
    "other axes (pairs: how many); ×: how much one axis's difference changes with the other's level, difference of "
    "differences. 95 % t interval; p: paired t test over seeds, Holm over all effects."
)


def reading(summary: Summary) -> list[str]:
    """Which cells are one run, and how to read the table."""
    lines = [*same_runs(summary), READING]
    if summary.plan.until:
        lines.append(
            "The looks were planned for rows, not for effects: these are over the seeds that all their cells have, and "
            "their p is not corrected for looking."
        )
    return lines


def effect_columns(found: Sequence[Effect]) -> list[Shown]:
    """An effect a row."""
    marked = Shown("cells to mend", tuple(str(effect.unmended) for effect in found))
    return [
        Shown("effect of", tuple(_pair(effect) for effect in found), right=False),
        Shown("level", tuple(" × ".join(effect.levels) for effect in found), right=False),
        Shown("against", tuple(_against(effect) for effect in found), right=False),
        Shown("pairs", tuple(str(effect.pairs) for effect in found)),
        Shown("seeds", tuple(str(effect.difference.n) for effect in found)),
        Shown("difference", tuple(_difference(effect) for effect in found)),
        Shown("p", tuple(p_text(effect.p) for effect in found)),
        *[marked] * any(effect.unmended for effect in found),
    ]


def _against(effect: Effect) -> str:
    return " × ".join(factor.levels[0] for factor in effect.factors)


def _difference(effect: Effect) -> str:
    gap = effect.difference
    if gap.mean is None:
        return NOTHING
    told = {"tested": signed_interval(gap), "constant": "on every seed", "same": "on every seed"}.get(gap.kind, "")
    return f"{signed(gap.mean)} {told}".strip()


def most_telling(found: Sequence[Effect]) -> list[Effect]:
    """All of them, or of many the main ones first and then those furthest from nothing, in the grid's order."""
    if len(found) <= MOST_SHOWN:
        return list(found)
    far = sorted(found, key=lambda effect: (not effect.main, -abs(effect.difference.mean or 0.0)))[:MOST_SHOWN]
    return [effect for effect in found if effect in far]


def told(found: Sequence[Effect]) -> Iterator[str]:
    """Sentences: the effects that are told apart from nothing, and what of the rest is open."""
    apart = [effect for effect in found if effect.apart]
    for effect in apart:
        gap = effect.difference
        size, interval = f"{abs(gap.mean or 0.0):.3f}", f"95 % interval {signed_interval(gap)}, Holm p {_p(effect)}"
        if effect.main:
            side = "above" if (gap.mean or 0.0) > 0 else "below"
            yield f"On average over the other axes {effect.name} is {size} {side} {_against(effect)} ({interval})."
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
        yield f"No verdict on {marked} of {len(found)} effects: they rest on cells that must be mended first."
    joint = [effect for effect in found if not effect.main]
    if joint and not any(effect in apart or effect.unmended for effect in joint):
        yield f"No interaction can be told from none ({listed(list(dict.fromkeys(_pair(e) for e in joint)))})."


def _p(effect: Effect) -> str:
    text = p_text(effect.p)
    return text if text.startswith("<") else f"= {text}"


def _pair(effect: Effect) -> str:
    return " × ".join(factor.name for factor in effect.factors)


def effects_frame(found: Sequence[Effect]) -> pl.DataFrame:
    """One row an effect: `axis`, `level` and `reference`, for an interaction also `axis_2` and so on.

    `pairs` differences are averaged on each of `n` seeds; then the mean `diff_mean`, `_std`, its interval clipped to
    [-1, 1], `p_one` without and `p` with Holm's adjustment over all rows, and how many of the cells are `unmended`:
    they have a mark that keeps a row without a verdict.
    """
    second = [effect if not effect.main else None for effect in found]
    gaps = [effect.difference for effect in found]
    columns: list[Column] = [
        ("effect", pl.String, ["main" if effect.main else "interaction" for effect in found]),
        ("axis", pl.String, [effect.factors[0].name for effect in found]),
        ("level", pl.String, [effect.levels[0] for effect in found]),
        ("reference", pl.String, [effect.factors[0].levels[0] for effect in found]),
        ("axis_2", pl.String, [each and each.factors[1].name for each in second]),
        ("level_2", pl.String, [each and each.levels[1] for each in second]),
        ("reference_2", pl.String, [each and each.factors[1].levels[0] for each in second]),
        ("pairs", pl.Int64, [effect.pairs for effect in found]),
        ("n", pl.Int64, [gap.n for gap in gaps]),
        ("diff_mean", pl.Float64, [gap.mean for gap in gaps]),
        ("diff_std", pl.Float64, [gap.std for gap in gaps]),
        ("diff_lo", pl.Float64, [clip(gap.lo, -1.0) for gap in gaps]),
        ("diff_hi", pl.Float64, [clip(gap.hi, -1.0) for gap in gaps]),
        ("p_one", pl.Float64, [gap.p for gap in gaps]),
        ("p", pl.Float64, [effect.p for effect in found]),
        ("unmended", pl.Int64, [effect.unmended for effect in found]),
    ]
    return pl.DataFrame([series(*column) for column in columns])

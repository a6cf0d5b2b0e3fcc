"""Compute the effects of a whole grid: the main effect of each axis and the interaction of each pair of axes.

A main effect is the accuracy at a level minus the accuracy at the baseline's level, on the same seed, averaged over the
cells of all other axes. An interaction is a difference of such differences (a factorial experiment: Fisher 1935). The
test is paired over seeds, as in the table; Holm's adjustment is over all effects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod
from statistics import fmean

import polars as pl

from mclab.config.stored import clashing
from mclab.report.stats import ALPHA, Difference, holm, paired
from mclab.report.table.accuracy import scores
from mclab.report.table.columns import Shown
from mclab.report.table.export import Column, series
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import NOTHING, clip, p_text, signed, signed_interval, value_text

#: A plan with more combinations of levels than this is not treated as a grid.
MOST_COMBINATIONS = 200_000
#: The most effects in a table at a terminal.
MOST_SHOWN = 30

Key = tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """An axis of the grid, or several axes that always change together.

    `levels` are texts, the baseline's level first.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Effect:
    """The main effect of a level of one factor, or the interaction of two levels of two factors.

    `pairs` is the number of differences that are averaged on each seed; `by_seed` are the averages. `unmended` is the
    number of cells in these differences that have a mark. `p` is Holm-adjusted over all effects.
    """

    factors: tuple[Factor, ...]
    levels: tuple[str, ...]
    pairs: int
    by_seed: dict[int, float]
    difference: Difference
    unmended: int = 0
    p: float | None = None

    @property
    def main(self) -> bool:
        """True for a main effect, which has only one factor."""
        return len(self.factors) == 1

    @property
    def apart(self) -> bool:
        """True if the effect differs significantly from 0 and none of its cells has a mark."""
        return self.p is not None and self.p < ALPHA and not self.unmended

    @property
    def axes(self) -> str:
        """The names of the factors, e.g. `gate` or `gate × segment`."""
        return " × ".join(factor.name for factor in self.factors)

    @property
    def reference(self) -> str:
        """The baseline's levels of the factors, e.g. `context` or `context × 8`."""
        return " × ".join(factor.levels[0] for factor in self.factors)

    @property
    def name(self) -> str:
        """The factors with their levels, e.g. `gate: input` or `gate: input × segment: 4`."""
        return " × ".join(f"{f.name}: {level}" for f, level in zip(self.factors, self.levels, strict=True))


@dataclass(frozen=True)
class Grid:
    """The rows of a summary as a grid. `cells` holds each row by its `Key`: the index of its level in each factor.

    A row in which some factors have no effect is in `cells` at every level of these factors. `idle` lists such rows,
    each with the factors that have no effect in it.
    """

    summary: Summary
    factors: tuple[Factor, ...]
    cells: Mapping[Key, Row]
    idle: tuple[tuple[Row, tuple[Factor, ...]], ...]

    @cached_property
    def scores(self) -> dict[Key, dict[int, float]]:
        """The accuracy of each cell by seed."""
        return {key: scores(row.records) for key, row in self.cells.items()}


def effects(summary: Summary) -> list[Effect]:
    """Return all effects, main effects first; empty if the plan is not a grid of at least two axes."""
    grid = grid_of(summary)
    if grid is None:
        return []
    found = [effect for place in range(len(grid.factors)) for effect in _effects(grid, (place,))]
    found += [effect for pair in combinations(range(len(grid.factors)), 2) for effect in _effects(grid, pair)]
    if not any(not effect.main or effect.pairs > 1 for effect in found):
        return []  # the table's column of differences already says this
    return [replace(e, p=p) for e, p in zip(found, holm([e.difference.p for e in found]), strict=True)]


def grid_of(summary: Summary) -> Grid | None:
    """Return the rows as a grid; `None` if fewer than two axes vary or the rows are named changes without axes."""
    if summary.plan.named or len(summary.rows) < 3:
        return None
    groups = _together(summary)
    levels = [_levels(summary, paths) for paths in groups]
    kept = [(paths, found) for paths, found in zip(groups, levels, strict=True) if len(found) > 1]
    if len(kept) < 2 or prod(len(found) for _, found in kept) > MOST_COMBINATIONS:
        return None
    factors = tuple(Factor(", ".join(summary.names[path] for path in paths), tuple(found)) for paths, found in kept)
    cells, idle = dict[Key, Row](), list[tuple[Row, tuple[Factor, ...]]]()
    for row in summary.rows:
        texts = [(factor, _text(row, paths)) for factor, (paths, _) in zip(factors, kept, strict=True)]
        if lacking := tuple(factor for factor, text in texts if text is None):
            idle.append((row, lacking))
        places = [range(len(f.levels)) if text is None else (f.levels.index(text),) for f, text in texts]
        for key in product(*places):
            cells.setdefault(key, row)
    return Grid(summary, factors, cells, tuple(idle))


def _together(summary: Summary) -> list[tuple[str, ...]]:
    """Return the paths of the axes in groups; axes that always change together (`zip`) are one group."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for path in summary.plan.axes:
        texts = [_text(row, (path,)) for row in summary.rows]
        order = {text: place for place, text in reversed(list(enumerate(texts)))}
        groups.setdefault(tuple(order[text] for text in texts), []).append(path)
    return [tuple(paths) for paths in groups.values()]


def _levels(summary: Summary, paths: tuple[str, ...]) -> list[str]:
    """Return the levels of a group of axes in the order of the rows, the baseline's level first."""
    return list(dict.fromkeys(text for row in summary.rows if (text := _text(row, paths)) is not None))


def _text(row: Row, paths: tuple[str, ...]) -> str | None:
    """Return the row's level of a group of axes as text; `None` if one of the keys has no effect in the row."""
    if any(path not in row.values for path in paths):
        return None
    return ", ".join(value_text(row.values[path]) for path in paths)


def _effects(grid: Grid, places: tuple[int, ...]) -> Iterator[Effect]:
    """Yield the effects of the factors at `places`, one for each combination of levels other than the baseline's."""
    for levels in product(*(range(1, len(grid.factors[place].levels)) for place in places)):
        corners = [_corner(places, levels, mask) for mask in product((1, 0), repeat=len(places))]
        squares = list(_squares(grid, places, corners))
        if squares:
            yield _effect(grid, places, levels, squares)


def _corner(places: tuple[int, ...], levels: tuple[int, ...], mask: tuple[int, ...]) -> tuple[dict[int, int], int]:
    """Return the levels of the factors at `places` in one corner of an effect, and the sign of this corner.

    A level is the baseline's if `mask` is 0. The sign is -1 if an odd number of levels is the baseline's.
    """
    at = {place: level * on for place, level, on in zip(places, levels, mask, strict=True)}
    return at, (-1) ** mask.count(0)


Square = list[tuple[Key, int]]


def _squares(grid: Grid, places: tuple[int, ...], corners: Sequence[tuple[dict[int, int], int]]) -> Iterator[Square]:
    """Yield, for each combination of levels of the other factors, the cells at the corners with their signs.

    A combination is left out if a cell is missing, if two cells are the same run, or if the cells are not comparable.
    """
    for key in grid.cells:
        if any(key[place] != corners[0][0][place] for place in places):
            continue
        square = [(tuple(at.get(place, level) for place, level in enumerate(key)), sign) for at, sign in corners]
        rows = [grid.cells[cell] for cell, _ in square if cell in grid.cells]
        if len({id(row) for row in rows}) == len(square) and _comparable(rows):
            yield square


def _comparable(rows: Sequence[Row]) -> bool:
    """Return whether the accuracies of the cells can be subtracted.

    They must have the same versions of formulas and the same slices. For four cells it is enough if the slices are the
    same along one of the two factors.
    """
    if clashing(record for row in rows for record in row.records.values()):
        return False
    tests = [frozenset(row.own) for row in rows]
    if len(rows) == 2:
        return tests[0] == tests[1]
    return (tests[0] == tests[1] and tests[2] == tests[3]) or (tests[0] == tests[2] and tests[1] == tests[3])


def _effect(grid: Grid, places: tuple[int, ...], levels: tuple[int, ...], squares: Sequence[Square]) -> Effect:
    cells = {cell for square in squares for cell, _ in square}
    seeds = set.intersection(*(set(grid.scores[cell]) for cell in cells))
    by_seed = {
        seed: fmean(sum(sign * grid.scores[cell][seed] for cell, sign in square) for square in squares)
        for seed in sorted(seeds)
    }
    factors = tuple(grid.factors[place] for place in places)
    names = tuple(factor.levels[level] for factor, level in zip(factors, levels, strict=True))
    unmended = len({id(grid.cells[cell]) for cell in cells if grid.cells[cell].marks})
    return Effect(factors, names, len(squares), by_seed, paired(by_seed, dict.fromkeys(by_seed, 0.0)), unmended)


def effect_columns(found: Sequence[Effect]) -> list[Shown]:
    """Return the columns of the table of effects, with one row for each effect."""
    marked = Shown("cells to mend", tuple(str(effect.unmended) for effect in found))
    return [
        Shown("effect of", tuple(effect.axes for effect in found), right=False),
        Shown("level", tuple(" × ".join(effect.levels) for effect in found), right=False),
        Shown("against", tuple(effect.reference for effect in found), right=False),
        Shown("pairs", tuple(str(effect.pairs) for effect in found)),
        Shown("seeds", tuple(str(effect.difference.n) for effect in found)),
        Shown("difference", tuple(_difference(effect) for effect in found)),
        Shown("p", tuple(p_text(effect.p) for effect in found)),
        *[marked] * any(effect.unmended for effect in found),
    ]


def _difference(effect: Effect) -> str:
    gap = effect.difference
    if gap.mean is None:
        return NOTHING
    told = {"tested": signed_interval(gap), "constant": "on every seed", "same": "on every seed"}.get(gap.kind, "")
    return f"{signed(gap.mean)} {told}".strip()


def most_telling(found: Sequence[Effect]) -> list[Effect]:
    """Return at most `MOST_SHOWN` effects, in the order of `found`.

    Main effects are preferred to interactions, then effects that are further from 0.
    """
    if len(found) <= MOST_SHOWN:
        return list(found)
    far = sorted(found, key=lambda effect: (not effect.main, -abs(effect.difference.mean or 0.0)))[:MOST_SHOWN]
    return [effect for effect in found if effect in far]


def effects_frame(found: Sequence[Effect]) -> pl.DataFrame:
    """Return a frame with one row for each effect: `axis`, `level`, `reference`; an interaction also has `axis_2` etc.

    `pairs` differences are averaged on each of `n` seeds. `diff_mean`, `diff_std` and the interval `diff_lo/_hi`, which
    is clipped to [-1, 1], are over the seeds. `p_one` is not adjusted, `p` is Holm-adjusted over all effects.
    `unmended` is the number of cells that have a mark.
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

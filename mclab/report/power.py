"""Compute the power of a plan before it is run: which differences from the baseline it detects, with what probability.

It is the power for one row at Holm's first and hardest step, where the error is divided by the number of compared rows;
the true power is larger if other rows also differ significantly. Differences are taken as normal. For a sequential plan
the power is simulated, and a row that is given up counts as not detected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from mclab.plan.plan import Plan
from mclab.plan.seeds import ERROR, Until
from mclab.plan.select import Lookup
from mclab.report.sequential import GIVE_UP_FROM, HOPELESS, power_of
from mclab.report.table.baseline import baselines_of, difference_of
from mclab.report.table.row import row_of

#: The powers for which the smallest detectable difference is computed.
USUAL = (0.8, 0.9)
GRIDS, SEED = 20_000, 0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Power:
    """The power of a plan for one row. `rows` is the number of compared rows.

    `sd` is the standard deviation of paired differences over seeds. `stored` is the smallest and the largest standard
    deviation in the records, `None` if `sd` was given; otherwise `sd` is the largest. `power` is the power for a
    difference of `effect`, and `seeds` the mean number of seeds in a sequential plan; both are `None` without an
    `effect`. `least` holds the smallest difference that is detected with each of the powers in `USUAL`.
    """

    rows: int
    sd: float
    stored: tuple[float, float] | None
    effect: float | None
    power: float | None
    seeds: float | None
    least: dict[float, float]


def plan_power(plan: Plan, lookup: Lookup, effect: float | None = None, sd: float | None = None) -> Power | None:
    """Return the power of the plan for a difference of `effect`.

    Without `sd`, the largest standard deviation of a row's paired differences is taken from the records that `lookup`
    finds. `None` if there is no such record, and if no rows are compared.
    """
    rows = [row_of(plan, cell, lookup) for cell in plan.cells]
    pairs = [
        (row, rows[base])
        for place, (row, base) in enumerate(zip(rows, baselines_of(rows), strict=True))
        if base is not None and base != place and set(row.own) == set(rows[base].own)
    ]
    found = [gap.std for row, base in pairs if (gap := difference_of(row, base)).kind == "tested" and gap.std]
    width = sd if sd is not None else max(found, default=None)
    if not pairs or width is None:
        return None
    power, seeds = _of(plan, len(pairs))
    told = None if effect is None else effect / width
    return Power(
        rows=len(pairs),
        sd=width,
        stored=None if sd is not None else (min(found), width),
        effect=effect,
        power=None if told is None else power(told),
        seeds=None if told is None else seeds(told),
        least={level: least_effect(power, level) * width for level in USUAL},
    )


def _of(plan: Plan, rows: int) -> tuple[Callable[[float], float], Callable[[float], float | None]]:
    """Return two functions of the effect in standard deviations: the power, and the mean number of seeds.

    The second function returns `None` for a plan with fixed seeds.
    """
    if plan.until is None:
        return (lambda effect: power_of(effect, len(plan.seeds), ERROR / rows)), (lambda effect: None)
    looked = Simulated(plan.until, rows)
    return (lambda effect: looked.of(effect)[0]), (lambda effect: looked.of(effect)[1])


def least_effect(power: Callable[[float], float], level: float) -> float:
    """Return the smallest effect whose power is `level`, with a relative error below 0.001."""
    high = 1.0
    while power(high) < level:
        high *= 2
    low = 0.0
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= level else (middle, high)
    return high


class Simulated:
    """A simulation of one row of a sequential plan with many draws of normal differences."""

    def __init__(self, rule: Until, rows: int) -> None:
        self.rule, self.rows = rule, rows

    @cached_property
    def _looks(self) -> list[tuple[int, float, Floats, Floats]]:
        """For each look: its seeds, the bound of |t|, and mean and deviation [GRIDS] of the draws without an effect."""
        draws = np.random.default_rng(SEED).normal(size=(GRIDS, self.rule.most))
        found = []
        for n, share in zip(self.rule.looks, self.rule.shares, strict=True):
            bound = -float(stdtrit(n - 1, share / self.rows / 2))
            found.append((n, bound, draws[:, :n].mean(1), draws[:, :n].std(1, ddof=1)))
        return found

    def of(self, effect: float) -> tuple[float, float]:
        """Return the fraction of draws in which the row is told better, and the mean number of seeds.

        `effect` is in standard deviations and positive.
        """
        going = np.ones(GRIDS, dtype=bool)
        told, seeds = 0, 0
        for n, bound, mean, std in self._looks:
            seeds += n * int(going.sum()) if n == self.rule.most else 0
            t = (mean + effect) * np.sqrt(n) / std
            over = going & (np.abs(t) >= bound)
            told += int((over & (t > 0)).sum())
            stop = over | (going & self._hopeless(np.abs(t), n))
            seeds += n * int(stop.sum()) if n < self.rule.most else 0
            going &= ~stop
        return told / GRIDS, seeds / GRIDS

    def _hopeless(self, t: Floats, n: int) -> NDArray[np.bool_]:
        part = n / self.rule.most
        if not GIVE_UP_FROM <= part < 1:
            return np.zeros(GRIDS, dtype=bool)
        z, last = -ndtri(stdtr(n - 1, -t)), -float(ndtri(self.rule.shares[-1] / self.rows / 2))
        return np.asarray(ndtr((z / np.sqrt(part) - last) / np.sqrt(1 - part)) < HOPELESS)

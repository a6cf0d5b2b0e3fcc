"""What seeds say about a mean and about a difference: Student's t, paired by seed, and Holm over a table's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtr, stdtrit

#: Fewer pairs than this and no test is made: with two the interval is 12.7 standard errors wide.
LEAST_PAIRS = 3
#: A p below this, adjusted where there are several, is called a difference.
ALPHA = 0.05
#: Two accuracies nearer than this are equal. One answer of a million moves an accuracy by more; rounding by far less.
SAME = 1e-9

Kind = Literal["tested", "identical", "same", "constant", "few", "slices", "versions", "lost", "alone", "waiting"]

#: Kinds of differences that are none: nothing is compared and nothing counted.
NOT_COMPARED = ("slices", "versions", "alone")


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation, interval and range of `n` seeds; `None` where `n` is too small for it."""

    n: int = 0
    mean: float | None = None
    std: float | None = None
    lo: float | None = None
    hi: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Difference:
    """A cell less the baseline over the `n` seeds that both have.

    `kind` says what the pairs allow. "tested": interval and p. "same": equal accuracies on every seed, so there is
    nothing to test; "identical": equal losses too, on all and on each slice. "slices": scored on other slices than the
    baseline, so nothing is compared; "versions": made with other versions of a formula, likewise. "lost": all runs
    of both diverged. "alone": the first change has no cell beside it. "constant": the same non-zero difference on every
    seed; a t test would divide by zero and call it p = 0, so the mean is given without interval and p. "few": fewer
    than three pairs. "waiting": a sequential grid has not looked yet.
    """

    n: int
    kind: Kind
    mean: float | None = None
    std: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None


def spread(values: Sequence[float], level: float = 0.95) -> Spread:
    """Student's t interval of the mean at `level` (Student 1908): mean ± t(n-1) std / sqrt(n). Not clipped.

    One value has no interval. Equal values have one of width zero: the data hold nothing to widen it with.
    """
    n = len(values)
    if n == 0:
        return Spread()
    mean, least, most = fmean(values), min(values), max(values)
    if n == 1:
        return Spread(1, mean, min=least, max=most)
    std = stdev(values)
    half = half_width(std, n, level)
    return Spread(n, mean, std, mean - half, mean + half, least, most)


def half_width(std: float, n: int, level: float = 0.95) -> float:
    """Half of the t interval of a mean of `n` values; n is at least 2."""
    return float(stdtrit(n - 1, (1 + level) / 2)) * std / sqrt(n)


def paired(cell: Mapping[int, float], baseline: Mapping[int, float], level: float = 0.95) -> Difference:
    """Two-sided paired t test of `cell` less `baseline`, both by seed; a seed that one side lacks is left out."""
    gaps = [cell[seed] - baseline[seed] for seed in sorted(cell.keys() & baseline.keys())]
    n = len(gaps)
    if n and all(abs(gap) <= SAME for gap in gaps):
        return Difference(n, "same", mean=0.0)
    if n < LEAST_PAIRS:
        return Difference(n, "few", mean=fmean(gaps) if gaps else None)
    mean, std = fmean(gaps), stdev(gaps)
    if max(gaps) - min(gaps) <= SAME:
        return Difference(n, "constant", mean=mean, std=0.0)
    half = half_width(std, n, level)
    p = 2 * float(stdtr(n - 1, -abs(mean) * sqrt(n) / std))
    return Difference(n, "tested", mean, std, mean - half, mean + half, p)


def exceeds(gaps: Sequence[float]) -> bool:
    """Is the mean above 0 by a one-sided t test at `ALPHA`? Where none is made (fewer than three values, all the same),
    by its sign alone."""
    if not gaps or fmean(gaps) <= SAME:
        return False
    if len(gaps) < LEAST_PAIRS or max(gaps) - min(gaps) <= SAME:
        return True
    n, mean, std = len(gaps), fmean(gaps), stdev(gaps)
    return float(stdtr(n - 1, -mean * sqrt(n) / std)) < ALPHA


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment (Holm 1979): the i-th smallest of m p values times m - i + 1, no less than the one
    before it, at most 1.

    A comparison without p (`None`) stays without, but counts in m: the family is fixed by the plan, not by the data.
    (Rows that the plan itself makes incomparable, scored on other slices, are not passed in and count nowhere.)
    """
    adjusted: list[float | None] = [None] * len(ps)
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    so_far = 0.0
    for rank, (p, place) in enumerate(known):
        so_far = max(so_far, min(1.0, p * (len(ps) - rank)))
        adjusted[place] = so_far
    return adjusted

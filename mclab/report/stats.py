"""Statistics over seeds: Student's t interval of a mean, the paired t test of a difference, Holm's adjustment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtr, stdtrit

#: The smallest number of pairs for a test. The interval of two pairs would be 12.7 standard errors wide on each side.
LEAST_PAIRS = 3
#: A difference is significant if its p is below this. With several tests, the adjusted p counts.
ALPHA = 0.05
#: Two accuracies count as equal if they differ by no more than this. Rounding causes much smaller differences, a
#: single answer out of a million a larger one.
SAME = 1e-9

Kind = Literal["tested", "identical", "same", "constant", "few", "slices", "versions", "lost", "alone", "waiting"]

#: Kinds of `Difference` for rows that are not compared with the baseline. Holm's adjustment does not count them.
NOT_COMPARED = ("slices", "versions", "alone")


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation, interval and range of `n` values. A figure that needs more values is `None`."""

    n: int = 0
    mean: float | None = None
    std: float | None = None
    lo: float | None = None
    hi: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Difference:
    """The difference row - baseline over the `n` seeds that both have. `kind` says what is known of it:

    - "tested": interval and p.
    - "same": equal accuracies on every seed, so there is nothing to test.
    - "identical": equal accuracies and losses on every seed, on all slices together and on each.
    - "constant": the same non-zero difference on every seed. There is only a mean: a t test would divide by zero and
      give
      p = 0.
    - "few": fewer than three pairs.
    - "lost": all runs of both rows diverged.
    - "slices", "versions": not compared, since the row was scored on other slices than the baseline or made with other
      versions of a formula.
    - "alone": not compared, since no row with the first change has the same other values.
    - "waiting": the first look of a sequential grid has not been taken yet.
    """

    n: int
    kind: Kind
    mean: float | None = None
    std: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None


def spread(values: Sequence[float], level: float = 0.95) -> Spread:
    """Return mean, standard deviation, range, and Student's t interval of the mean at `level` (Student 1908).

    The interval is mean ± t(n-1) std / sqrt(n), not clipped. A single value has no interval; equal values have an
    interval of width 0.
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
    """Return half the width of the t interval of a mean of `n` values; `n` must be at least 2."""
    return float(stdtrit(n - 1, (1 + level) / 2)) * std / sqrt(n)


def paired(cell: Mapping[int, float], baseline: Mapping[int, float], level: float = 0.95) -> Difference:
    """Test `cell` - `baseline`, two accuracies by seed, by a two-sided paired t test over the seeds that both have."""
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
    """Return whether the mean of `gaps` is above 0 by a one-sided t test at `ALPHA`.

    If no test is possible (fewer than three values, or all values equal), the sign of the mean decides.
    """
    if not gaps or fmean(gaps) <= SAME:
        return False
    if len(gaps) < LEAST_PAIRS or max(gaps) - min(gaps) <= SAME:
        return True
    n, mean, std = len(gaps), fmean(gaps), stdev(gaps)
    return float(stdtr(n - 1, -mean * sqrt(n) / std)) < ALPHA


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return the p values with Holm's step-down adjustment (Holm 1979), in the order of `ps`.

    The i-th smallest of m p values is multiplied by m - i + 1; the result is at most 1 and not below the adjusted p
    before it. A `None` in `ps`, a comparison without p, stays `None` but counts in m: the family is fixed by the plan,
    not by the data. Rows that cannot be compared, e.g. because of other slices, must not be in `ps`.
    """
    adjusted: list[float | None] = [None] * len(ps)
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    so_far = 0.0
    for rank, (p, place) in enumerate(known):
        so_far = max(so_far, min(1.0, p * (len(ps) - rank)))
        adjusted[place] = so_far
    return adjusted

"""The sequential test (`seeds: {until: told}`): seeds are added at planned looks until every row of a grid is decided.

Rows are compared with a shared baseline by paired differences over seeds. A look is a planned test of all rows that are
still open, by default at 5, 8, 12, 16 and 20 seeds. Each look may spend its share (0.3, 0.6, 0.7, 1.0 and 2.4 %) of a
familywise error of 5 %. Holm's procedure divides the share over the rows (Holm 1979).

By the union bound, the error is at most the sum of the shares, however the looks depend on each other, if the p of each
look is valid. For that, the differences between two equal cells must be about normal, or symmetric. If only the means
are equal and the differences are strongly skewed, the error is 16 to 35 %. Shares, looks, rows and margin are fixed
before the first run. Unplanned looks, added rows and exchanged seeds are not corrected for.

`python -m benchmarks sequential` simulates error, power and seeds.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, sqrt
from statistics import fmean, stdev
from typing import Generic, Literal, TypeVar

from scipy.special import gammaln, nctdtr, nctdtrinc, ndtr, ndtri, stdtr, stdtrit

from mclab.plan.seeds import Until

#: The result of a look for a row: "better" or "worse" (significantly different from the baseline), "even" (equal
#: within the margin), "not separable" (given up, since even the last look will hardly decide it), or still "open".
State = Literal["open", "better", "worse", "even", "not separable"]
#: Further results. "waiting": the first look has not been taken yet. "identical": the row computes the same function
#: as the baseline. "unmended": no verdict, since the row or its baseline has a mark or all its runs diverged.
#: "failed": no verdict, since runs failed. "not compared": see `stats.NOT_COMPARED`.
LookState = State | Literal["waiting", "identical", "unmended", "failed", "not compared"]
#: A row is given up if the last look will tell it with a probability below `HOPELESS`. This is decided at looks with
#: at least the fraction `GIVE_UP_FROM` of the seeds of the last look.
GIVE_UP_FROM, HOPELESS = 0.6, 0.1
#: The power for which a number of seeds is computed, and the error of the one-sided lower limit behind the safe
#: number.
POWER, SURE = 0.8, 0.2
#: The largest number of seeds that the search tries.
MOST_SEEDS = 100_000
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Gap:
    """The difference row - baseline over `n` seeds: mean, standard deviation, two-sided p of the paired t test.

    `lo` and `hi` are the interval mean ± t(1 - share / 2) std / sqrt(n). For each row it covers the true difference
    with at least 96 %, although the looks decide the number of seeds.
    """

    n: int
    mean: float
    std: float
    p: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Settled:
    """The result of one look for one row.

    `p` is the row's p times the number of rows that Holm still counts, at most 1. The row is told better or worse if
    `p` is at most `share`, the look's part of the error.
    """

    state: State
    gap: Gap
    p: float
    share: float


@dataclass(frozen=True)
class LookResult:
    """The result for a row after all looks so far.

    `n` is the number of seeds at the last look that included the row, 0 before the first look. `gap`, `p` and `share`
    are those of that look, if it tested the row. `why` says why a row has no verdict. `kind`, as in
    `stats.Difference.kind`, says why the row is not compared, or that it is identical to the baseline.
    """

    state: LookState
    n: int = 0
    gap: Gap | None = None
    p: float | None = None
    share: float | None = None
    why: str = ""
    kind: Literal["slices", "versions", "lost", "alone", "identical"] | None = None


def gap_of(values: Sequence[float], share: float, step: float) -> Gap:
    """Test the paired differences `values` (at least two) at a look that may spend `share` of the error.

    The standard deviation is at least half of `step`, the resolution of the metric: even if all differences so far are
    equal, the next one can differ.
    """
    n, mean = len(values), fmean(values)
    std = max(stdev(values), step / 2)
    if std == 0.0:
        return Gap(n, mean, 0.0, 0.0 if mean else 1.0, mean, mean)
    p = 2 * float(stdtr(n - 1, -abs(mean) * sqrt(n) / std))
    half = _quantile(share / 2, n - 1) * std / sqrt(n)
    return Gap(n, mean, std, p, mean - half, mean + half)


def look(
    gaps: Mapping[Key, Sequence[float]], rule: Until, rows: int, told: int = 0, held: Collection[Key] = ()
) -> dict[Key, Settled]:
    """Take one look and return its result for each open row. `gaps` holds the paired differences of these rows.

    All rows have the same number of seeds. `rows` is the number of rows that the plan compares, and `told` the number
    that earlier looks have told better or worse. Holm's divisor is `rows - told`: rows that were given up or found even
    still count. Holm's step-down continues while the smallest p is at most the share divided by the number of remaining
    rows. A row in `held` stays open whatever its p. Raises `ValueError` if no look is planned at this number of seeds.
    """
    (n,) = {len(values) for values in gaps.values()} or {rule.looks[0]}
    if n not in rule.looks:
        raise ValueError(f"no look is planned at {n} seeds; the looks are at {', '.join(map(str, rule.looks))}")
    share, left = rule.share(n), rows - told
    found: dict[Key, Settled] = {}
    measured = {row: gap_of(values, share, rule.step) for row, values in gaps.items()}
    adjusted, telling = 0.0, True
    for row, gap in sorted(measured.items(), key=lambda item: item[1].p):
        if row in held:
            found[row] = Settled("open", gap, min(1.0, gap.p * left), share)
            continue
        adjusted = max(adjusted, min(1.0, gap.p * left))
        telling = telling and gap.p <= share / left
        if telling:
            found[row] = Settled("better" if gap.mean > 0 else "worse", gap, adjusted, share)
            left = max(1, left - 1)
        else:
            found[row] = Settled(_not_told(gap, rule, rows, share), gap, adjusted, share)
    return {row: found[row] for row in gaps}


class Looks(Generic[Key]):
    """The state of a sequential comparison between two looks.

    `rows` are all compared rows, `open` those that still need seeds. `settled` holds the latest result of each row that
    was tested at a look, also if it is still open.
    """

    def __init__(self, rule: Until, rows: Sequence[Key]) -> None:
        self.rule, self.rows = rule, tuple(rows)
        self.open = list(rows)
        self.settled: dict[Key, Settled] = {}

    def take(self, gaps: Mapping[Key, Sequence[float]], held: Collection[Key] = ()) -> None:
        """Take a look at the paired differences `gaps` of open rows. An open row that is not in `gaps` stays open."""
        told = sum(each.state in ("better", "worse") for each in self.settled.values())
        found = look(gaps, self.rule, len(self.rows), told, held) if gaps else {}
        self.settled.update(found)
        self.open = [row for row in self.open if row not in found or found[row].state == "open"]

    def drop(self, row: Key) -> None:
        """Close `row`, which cannot get a verdict, so that it needs no more seeds.

        Holm's adjustment still counts it.
        """
        self.open.remove(row)


def _not_told(gap: Gap, rule: Until, rows: int, share: float) -> State:
    if rule.even and is_even(gap, rule.even, share):
        return "even"
    part = gap.n / rule.most
    if GIVE_UP_FROM <= part < 1 and chance(gap, rule, rows) < HOPELESS:
        return "not separable"
    return "open"


def is_even(gap: Gap, margin: float, share: float) -> bool:
    """Return whether the difference is within ± `margin`, by two one-sided t tests at `share` (Schuirmann 1987)."""
    return abs(gap.mean) + _quantile(share, gap.n - 1) * gap.std / sqrt(gap.n) < margin


def chance(gap: Gap, rule: Until, rows: int) -> float:
    """Return the conditional power: the probability that the last look tells the row better or worse.

    The true difference is taken to be the observed one. By the normal approximation of a random walk with drift (Lan &
    Wittes 1988), the result is Phi((z / sqrt(u) - c) / sqrt(1 - u)), where u = n / last is the part of the seeds that
    have been used, and c is the bound of the last look with Holm's full divisor.
    """
    z, bound = -float(ndtri(gap.p / 2)), -float(ndtri(rule.shares[-1] / rows / 2))
    part = gap.n / rule.most
    return float(ndtr((z / sqrt(part) - bound) / sqrt(1 - part)))


def seeds_to_tell(gap: Gap, share: float, rows: int) -> tuple[int | None, int | None]:
    """Return about how many seeds tell the row with a power of 80 %, and a number on the safe side.

    `share` is that of the last look. The first number is for the observed difference in standard deviations, corrected
    for its bias at few seeds (Hedges 1981); the second is for the one-sided 80 % lower limit of that effect. A number
    above 100,000 is given as `None`.
    """
    if not gap.mean or not gap.std:
        return None, None
    t = abs(gap.mean) * sqrt(gap.n) / gap.std
    likely = _unbiased(gap.n) * t / sqrt(gap.n)
    least = 0.0 if float(stdtr(gap.n - 1, -t)) > SURE else float(nctdtrinc(gap.n - 1, 1 - SURE, t)) / sqrt(gap.n)
    return needed(likely, share / rows), needed(least, share / rows)


def _unbiased(n: int) -> float:
    """Return Hedges' factor, by which an effect estimated from `n` pairs is multiplied; it is 0.798 for five pairs."""
    if n < 3:
        return 0.0
    return exp(gammaln((n - 1) / 2) - gammaln((n - 2) / 2)) / sqrt((n - 1) / 2)


def needed(effect: float, alpha: float, power: float = POWER) -> int | None:
    """Return the smallest number of pairs for which a two-sided paired t test at `alpha` has the power `power`.

    `effect` is the true difference in standard deviations. `None` if the number is above 100,000.
    """
    if power_of(effect, MOST_SEEDS, alpha) < power:
        return None
    low, high = 1, 2
    while power_of(effect, high, alpha) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(effect, middle, alpha) >= power else (middle, high)
    return high


def power_of(effect: float, n: int, alpha: float) -> float:
    """Return the power of a two-sided paired t test of `n` pairs at `alpha`, for an `effect` in standard deviations.

    It is P(t' > t(1 - alpha / 2, n - 1)), where t' has a noncentral t distribution with n - 1 degrees of freedom and
    noncentrality effect sqrt(n). The other tail, a significant difference with the wrong sign, does not count.
    """
    if n < 2 or effect <= 0:
        return 0.0
    shift, bound = effect * sqrt(n), _quantile(alpha / 2, n - 1)
    if shift > bound + 37:  # `nctdtr` cannot be computed there; its value is 0
        return 1.0
    return 1 - float(nctdtr(n - 1, shift, bound))


def _quantile(tail: float, df: int) -> float:
    """Return the value that Student's t exceeds with probability `tail`."""
    return -float(stdtrit(df, tail)) if tail > 0 else inf

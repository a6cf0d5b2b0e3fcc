"""Seeds until told: when a row of a grid is settled, at planned looks, with a familywise error of at most 5 %.

Rows are compared with a shared baseline by paired differences over seeds. At each planned look (5, 8, 12, 16 and 20
seeds) the rows that are still open are tested, and each look may spend its share of the 5 % (0.3, 0.6, 0.7, 1.0 and
2.4 %), which Holm's procedure divides over the rows (Holm 1979). The error is at most the sum of the shares by the
union bound, whatever the looks have to do with each other, provided that each look's p is valid: that the differences
of two equal cells are about normal, or symmetric. It is the cells that must be equal for that: where only means are,
and differences are strongly skewed, the error is 16 to 35 %. The shares, the looks, the rows and the margin are fixed
before the first run; an unplanned look, an added row or an exchanged seed is not corrected for.

`python -m benchmarks sequential` simulates error, power and seeds.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, sqrt
from statistics import fmean, stdev
from typing import Generic, Literal, TypeVar

from scipy.special import gammaln, nctdtr, nctdtrinc, ndtr, ndtri, stdtr, stdtrit

from mclab.plan.seeds import Until

#: What a look says of a row: told apart from the baseline, even with it within the margin, not separable by the last
#: look, or still open.
State = Literal["open", "better", "worse", "even", "not separable"]
#: Beside them: the first look is not taken yet; the same function as the baseline; a mark that must be mended before
#: anything follows (of the row or of its baseline); runs that failed; rows that are not compared.
LookState = State | Literal["waiting", "identical", "unmended", "failed", "not compared"]
#: Rows are given up from this part of the last look on, where the chance to be told is below `HOPELESS`.
GIVE_UP_FROM, HOPELESS = 0.6, 0.1
#: The power that is asked of a number of seeds, and how sure the safe number is.
POWER, SURE = 0.8, 0.2
#: A search for a number of seeds ends here.
MOST_SEEDS = 100_000
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Gap:
    """A row less the baseline over its `n` shared seeds: mean, standard deviation, two-sided p of the paired t test.

    The interval mean ± t(1 - share / 2) std / sqrt(n) covers at least 96 % a row even where looking decided the number
    of seeds.
    """

    n: int
    mean: float
    std: float
    p: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Settled:
    """What a look says of a row.

    `p` is the row's p times the number of rows that Holm still counts, at most 1: the row is told where it is at most
    `share`, the look's part of the error.
    """

    state: State
    gap: Gap
    p: float
    share: float


@dataclass(frozen=True)
class LookResult:
    """What the looks so far say of a row.

    `n` seeds at the last look that it took part in, 0 before the first; `gap`, `p` and `share` of that look, where it
    was tested then. `why` says what keeps a row without a verdict; `kind` why it is not compared, or that it is the
    same function as the baseline, as in `stats.Difference.kind`.
    """

    state: LookState
    n: int = 0
    gap: Gap | None = None
    p: float | None = None
    share: float | None = None
    why: str = ""
    kind: Literal["slices", "versions", "lost", "alone", "identical"] | None = None


def gap_of(values: Sequence[float], share: float, step: float) -> Gap:
    """The paired differences `values` (at least two), at a look that may spend `share`.

    The standard deviation counts as no less than half of `step`, the metric's resolution: equal differences are no
    proof that the next one is equal too.
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
    """One look: the paired differences of every row that is open, all over the same number of seeds.

    `rows` is how many rows the plan compares, `told` how many earlier looks have told apart; even and given-up rows
    stay counted. Holm's step-down continues while the smallest p is at most the share over the rows that are left.
    Earlier p values are not looked at again. A row in `held` stays open whatever its p. Raises `ValueError` for a
    number of seeds at which the rule does not look.
    """
    (n,) = {len(values) for values in gaps.values()} or {rule.looks[0]}
    if n not in rule.looks:
        raise ValueError(f"{n} seeds: the looks are at {', '.join(map(str, rule.looks))}")
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
    """A sequential comparison from look to look: which rows are open, and the last that was said of each.

    `rows` are those that the plan compares. `settled` holds nothing of a row before its first look.
    """

    def __init__(self, rule: Until, rows: Sequence[Key]) -> None:
        self.rule, self.rows = rule, tuple(rows)
        self.open = list(rows)
        self.settled: dict[Key, Settled] = {}

    def take(self, gaps: Mapping[Key, Sequence[float]], held: Collection[Key] = ()) -> None:
        """A look at the paired differences of open rows; one that is left out stays open, and counted."""
        told = sum(each.state in ("better", "worse") for each in self.settled.values())
        found = look(gaps, self.rule, len(self.rows), told, held) if gaps else {}
        self.settled.update(found)
        self.open = [row for row in self.open if row not in found or found[row].state == "open"]

    def drop(self, row: Key) -> None:
        """Ask no more seeds for a row that cannot be judged; it stays counted."""
        self.open.remove(row)


def _not_told(gap: Gap, rule: Until, rows: int, share: float) -> State:
    if rule.even and is_even(gap, rule.even, share):
        return "even"
    part = gap.n / rule.most
    if GIVE_UP_FROM <= part < 1 and chance(gap, rule, rows) < HOPELESS:
        return "not separable"
    return "open"


def is_even(gap: Gap, margin: float, share: float) -> bool:
    """True where one-sided t tests at `share` tell the difference from both ends of the margin (Schuirmann 1987)."""
    return abs(gap.mean) + _quantile(share, gap.n - 1) * gap.std / sqrt(gap.n) < margin


def chance(gap: Gap, rule: Until, rows: int) -> float:
    """Conditional power: the chance that the last look tells the row if the true difference is the observed one.

    By the normal approximation of a random walk with drift (Lan & Wittes 1988), with part u = n / last of the seeds:
    Phi((z / sqrt(u) - c) / sqrt(1 - u)), c the last look's bound with Holm's full divisor.
    """
    z, bound = -float(ndtri(gap.p / 2)), -float(ndtri(rule.shares[-1] / rows / 2))
    part = gap.n / rule.most
    return float(ndtr((z / sqrt(part) - bound) / sqrt(1 - part)))


def seeds_to_tell(gap: Gap, share: float, rows: int) -> tuple[int | None, int | None]:
    """About how many seeds would tell the row with a power of 80 %, and how many to be safe; `None` for no number.

    `share` is that of the last look. The first takes the observed difference in standard deviations, without its bias
    at few seeds (Hedges 1981); the second the one-sided 80 % lower limit of it.
    """
    if not gap.mean or not gap.std:
        return None, None
    t = abs(gap.mean) * sqrt(gap.n) / gap.std
    likely = _unbiased(gap.n) * t / sqrt(gap.n)
    least = 0.0 if float(stdtr(gap.n - 1, -t)) > SURE else float(nctdtrinc(gap.n - 1, 1 - SURE, t)) / sqrt(gap.n)
    return needed(likely, share / rows), needed(least, share / rows)


def _unbiased(n: int) -> float:
    """Hedges' factor for an effect of n pairs: 0.798 for five."""
    if n < 3:
        return 0.0
    return exp(gammaln((n - 1) / 2) - gammaln((n - 2) / 2)) / sqrt((n - 1) / 2)


def needed(effect: float, alpha: float, power: float = POWER) -> int | None:
    """The least number of pairs with which a two-sided paired t test at `alpha` has this power for a true difference of
    `effect` standard deviations; `None` where that is more than 100,000.
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
    """The power of a two-sided paired t test of n pairs at `alpha` for an effect in standard deviations.

    P(t' > t(1 - alpha / 2, n - 1)), t' noncentral with effect sqrt(n). The other tail, where the test would tell the
    wrong sign, is left out.
    """
    if n < 2 or effect <= 0:
        return 0.0
    shift, bound = effect * sqrt(n), _quantile(alpha / 2, n - 1)
    if shift > bound + 37:  # the distribution function is not to be had there, and is 0
        return 1.0
    return 1 - float(nctdtr(n - 1, shift, bound))


def _quantile(tail: float, df: int) -> float:
    """The value that Student's t exceeds with probability `tail`."""
    return -float(stdtrit(df, tail)) if tail > 0 else inf

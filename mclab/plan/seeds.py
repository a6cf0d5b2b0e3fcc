"""Read the grid's `seeds`: a range `0..4` (both ends included), a list, or `{until: told}`.

With `{until: told}`, seeds are added at planned looks until every row is decided. The error of 5 % is divided over the
looks. Looks, shares, margin and the resolution of the metric are fixed in the plan before the first run.
docs/statistics.md says what is done at a look.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.parse import quoted
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.source import Source

MOST_SEEDS = 1000
_RANGE = re.compile(r"\s*(-?\d{1,19})\s*\.\.\s*(-?\d{1,19})\s*")


def seeds_from(value: Any, error: Callable[[str], ConfigError]) -> tuple[int, ...]:
    """Return the seeds that a grid's `seeds` lists, in the same order. `error` turns a message into an error."""
    if isinstance(value, str) and (found := _RANGE.fullmatch(value)):
        first, last = map(int, found.groups())
        if last < first:
            raise error(f"seeds: {value} counts down; write {last}..{first}")
        value = list(range(first, min(last, first + MOST_SEEDS) + 1))
    if isinstance(value, int) and not isinstance(value, bool):
        (seed,) = _checked([value], error)
        if seed == 0:
            raise error("seeds: 0 could mean seed 0 or no seeds; write [0]")
        raise error(f"seeds: {seed} could mean seed {seed} or {seed} seeds; write [{seed}] or 0..{seed - 1}")
    if not isinstance(value, list) or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in value):
        raise error(f"seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got {quoted(value)}")
    return _checked(value, error)


def _checked(seeds: list[int], error: Callable[[str], ConfigError]) -> tuple[int, ...]:
    if not seeds:
        raise error("seeds: must have at least one seed, got []")
    if len(seeds) > MOST_SEEDS:
        raise error(f"seeds: at most {MOST_SEEDS} seeds are allowed")
    if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
        raise error(f"seeds: seed {twice[0]} is listed twice")
    if wrong := [seed for seed in seeds if not 0 <= seed < 2**31]:
        raise error(f"seeds: every seed must be from 0 to {2**31 - 1}, got {wrong[0]}")
    return tuple(seeds)


UNTIL = "until"
TOLD = "told"
KEYS = (UNTIL, "looks", "shares", "even", "from")
#: The error that the looks divide; it is for all rows and looks together.
ERROR = 0.05
#: The default looks (numbers of seeds), and the part of the error that each may spend.
LOOKS = (5, 8, 12, 16, 20)
SHARES = (0.003, 0.006, 0.007, 0.010, 0.024)
#: The smallest number of seeds of a look, since a t test needs three pairs; the largest number of looks.
FEWEST, MOST_LOOKS = 3, 20
_LARGEST_SEED = 2**31 - 1
#: The rounding error that the sum of the shares may have, since they are written in decimals.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Until:
    """The rule of a sequential grid: the numbers of seeds at which rows are tested (looks), and the limits of the
    tests.

    `looks` are increasing numbers of seeds. `shares` are the parts of the error of 5 % that the looks may spend. `even`
    is the margin within which a row counts as even with the baseline, in units of the metric, or `None`. `step` is the
    resolution of the metric: by how much one answer changes the accuracy.
    """

    looks: tuple[int, ...] = LOOKS
    shares: tuple[float, ...] = SHARES
    even: float | None = None
    step: float = 0.0

    @property
    def most(self) -> int:
        """The number of seeds at the last look."""
        return self.looks[-1]

    def share(self, seeds: int) -> float:
        """Return the part of the error that the look at `seeds` seeds may spend."""
        return self.shares[self.looks.index(seeds)]


def until_from(data: Mapping[str, Any], source: Source) -> tuple[Until, int]:
    """Return the rule of a sequential grid from its `seeds` mapping, and the first seed.

    The rule's `step`, the resolution of the metric, is not set yet. Raises `ConfigError` for an unknown key, looks that
    do not increase, and shares that add up to more than 5 %.
    """
    for key in data:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS) or f"the keys of seeds are {', '.join(KEYS)}"
            raise source.error(f"seeds.{key}", f"seeds.{key}: unknown key; {hint}")
    if data.get(UNTIL) != TOLD:
        raise source.error(
            "seeds", f"seeds.until: must be the word told, as in {{until: told}}, got {quoted(data.get(UNTIL))}"
        )
    looks = _looks(data.get("looks", list(LOOKS)), source)
    shares = _shares(data["shares"], looks, source) if "shares" in data else shares_of(looks)
    first = data.get("from", 0)
    if not _whole(first) or not 0 <= first <= _LARGEST_SEED - looks[-1]:
        raise source.error(
            "seeds.from", f"seeds.from: must be the first seed, a whole number from 0, got {quoted(first)}"
        )
    return Until(looks, shares, _margin(data.get("even"), source)), first


def _looks(value: Any, source: Source) -> tuple[int, ...]:
    def wrong(text: str) -> ConfigError:
        return source.error("seeds.looks", f"seeds.looks: {text}")

    if not isinstance(value, list) or not value or not all(map(_whole, value)):
        raise wrong(f"must be a list of numbers of seeds, e.g. {list(LOOKS)}, got {quoted(value)}")
    if any(later <= sooner for sooner, later in pairwise(value)):
        raise wrong(f"the numbers must increase, got {value}")
    if value[0] < FEWEST:
        raise wrong(f"the first look has {value[0]} seeds, but a test needs {FEWEST}; begin with {FEWEST} or more")
    if value[-1] > MOST_SEEDS or len(value) > MOST_LOOKS:
        raise wrong(f"must have at most {MOST_LOOKS} looks, each at no more than {MOST_SEEDS} seeds")
    return tuple(value)


def _shares(value: Any, looks: tuple[int, ...], source: Source) -> tuple[float, ...]:
    def wrong(text: str) -> ConfigError:
        return source.error("seeds.shares", f"seeds.shares: {text}")

    if not isinstance(value, list) or not all(map(_positive, value)):
        raise wrong(
            f"must be a list with the part of the error for each look, e.g. {list(SHARES)}, got {quoted(value)}"
        )
    if len(value) != len(looks):
        raise wrong(f"must have one share for each of the {len(looks)} looks, got {len(value)}")
    if sum(value) > ERROR + _ROUNDING:
        raise wrong(f"the shares add up to {sum(value):.4g}, which is more than the whole error of {ERROR}")
    return tuple(map(float, value))


def _margin(value: Any, source: Source) -> float | None:
    if value is None:
        return None
    if not _positive(value) or value >= 1:
        raise source.error(
            "seeds.even", f"seeds.even: must be a margin above 0 and below 1, e.g. 0.02, got {quoted(value)}"
        )
    return float(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def shares_of(looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the shares of the 5 % for any looks.

    Up to each look as much error is spent as the default looks spend up to the same fraction of their last look,
    linearly interpolated.
    """
    if looks == LOOKS:
        return SHARES
    spent = [_spent(n / looks[-1]) for n in looks]
    return tuple(round(after - before, 6) for before, after in pairwise([0.0, *spent]))


def _spent(part: float) -> float:
    """Return the error that the default looks have spent up to the fraction `part` of the last look's seeds."""
    known = [(0.0, 0.0)]
    for look, share in zip(LOOKS, SHARES, strict=True):
        known.append((look / LOOKS[-1], known[-1][1] + share))
    (x0, y0), (x1, y1) = next(pair for pair in pairwise(known) if part <= pair[1][0])
    return y0 + (y1 - y0) * (part - x0) / (x1 - x0)


def resolution(runs: Iterable[RunConfig]) -> float:
    """Return the largest change that one answer can make to a run's mean accuracy, over all runs."""
    return max(map(_resolution, runs))


def _resolution(run: RunConfig) -> float:
    parts = run.task.slices
    answers = min(run.task.only(part).questions for part in parts) * run.eval.test
    return 1 / (answers * len(parts))

"""Which seeds a grid runs: `0..4` (both ends count) or a list; a bare number is refused, it could mean either.

`{until: told}` is in `until.py`.
"""

import re
from collections.abc import Callable
from typing import Any

from mclab.config.parse import quoted
from mclab.config.strict import ConfigError
from mclab.plan.loader import parse_value

MOST_SEEDS = 1000
_RANGE = re.compile(r"\s*(-?\d{1,19})\s*\.\.\s*(-?\d{1,19})\s*")


def seeds_from(value: Any, error: Callable[[str], ConfigError]) -> tuple[int, ...]:
    """The seeds that a grid's `seeds` lists, in its order. `error` makes the error of a text."""
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
        raise error(f"seeds: needs a range such as 0..4 or a list such as [0, 1, 2], got {quoted(value)}")
    return _checked(value, error)


def seeds_from_text(text: str) -> tuple[int, ...]:
    """The seeds of the command line's `--seeds`: `0..4`, `0,2,5` or `[0, 2, 5]`. Raises `ConfigError`."""

    def error(message: str) -> ConfigError:
        return ConfigError(f"--{message}")

    bare = text.strip()
    if bare == "0":  # no seeds at all would be nothing to ask for
        return (0,)
    try:
        value = parse_value(f"[{bare}]" if "," in bare and not bare.startswith("[") else bare)
    except ConfigError as wrong:
        raise error(f"seeds: {wrong}") from None
    return seeds_from(value, error)


def _checked(seeds: list[int], error: Callable[[str], ConfigError]) -> tuple[int, ...]:
    if not seeds:
        raise error("seeds: needs at least one seed, got []")
    if len(seeds) > MOST_SEEDS:
        raise error(f"seeds: more than {MOST_SEEDS} seeds")
    if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
        raise error(f"seeds: lists {twice[0]} twice")
    if wrong := [seed for seed in seeds if not 0 <= seed < 2**31]:
        raise error(f"seeds: needs seeds from 0 to {2**31 - 1}, got {wrong[0]}")
    return tuple(seeds)

"""Segments of given lengths, the last of which repeats (docs/equations.md#listed-segments)."""

from itertools import accumulate
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, int) else value


SegmentLengths = Annotated[tuple[Annotated[int, Field(ge=1, le=2**20)], ...], BeforeValidator(_as_tuple)]


def without_repeats(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Without what says again that the last length repeats."""
    end = len(lengths)
    while end > 1 and lengths[end - 1] == lengths[end - 2]:
        end -= 1
    return lengths[:end]


def segments_in(lengths: tuple[int, ...], length: int) -> int:
    """Segments of a sequence of `length` tokens."""
    ends = list(accumulate(lengths))
    if length > ends[-1]:
        return len(ends) - (ends[-1] - length) // lengths[-1]
    return 1 + sum(end < length for end in ends)

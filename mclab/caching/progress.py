"""What a caching layer's sequence leaves behind for its next token.

Shapes: G sequences and heads folded, K key width.
"""

from dataclasses import dataclass, field

from torch import Tensor

from mclab.caching.kept import Kept
from mclab.memories.base import State


@dataclass(frozen=True)
class Writer:
    """A memory that is being written."""

    first: int
    """The segment that it began with."""
    tokens: int
    """How many it holds of its segments."""
    state: State | None
    """None where it only pools: a bucket of a memory that is not written by itself."""
    total: Tensor | None
    """[G, K]: the sum of what is pooled, where there are scores."""


@dataclass(frozen=True)
class Progress:
    """What a sequence leaves behind for its next token. Nothing in it is ever written to.

    Between two tokens its states are as `Memory.carried` leaves them.
    """

    tokens: int = 0
    block: int = 0
    """The number of the open segment."""
    writers: tuple[Writer, ...] = ()
    """The online memory is the last; before it the buckets that later segments read (`segmentation: log`)."""
    kept: Kept = field(default_factory=Kept)
    """Of each kept memory its matrices, its slot for the input gate and, where there are scores, its pool."""

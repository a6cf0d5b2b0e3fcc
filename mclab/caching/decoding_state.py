"""What a caching layer's sequence leaves behind for its next token: open memories, and the kept ones.

`DecodingState` is the whole of it, `Writer` a memory that is still written, `KeptMemories` those that no longer change.
Its fields are the names under which a cache is stored (models/cache.py).

Shapes: N memories, G sequences and heads folded, K key width; a matrix is [G, O, I].
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from mclab.memories.base import State

#: Rows of a new buffer; a full one is doubled.
FIRST_ROWS = 4


@dataclass
class _Buffer:
    """Tensors whose first `used` rows are taken. A row that is taken is never written again."""

    tensors: tuple[Tensor, ...]
    used: int


@dataclass(frozen=True)
class KeptMemories:
    """Rows of tensors, a memory each, oldest first. What adds or drops one returns another `KeptMemories`.

    Two that grew from the same one share memory as far as they are alike, so that a token's cost does not grow with
    the number of kept memories; where a gradient is wanted all is copied.
    """

    buffer: _Buffer | None = None
    count: int = 0

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """Each tensor [N, ...]; none before the first memory."""
        return tuple(each[: self.count] for each in self.buffer.tensors) if self.buffer else ()

    def added(self, *rows: Tensor) -> "KeptMemories":
        """With one memory more, `rows` being its row of each tensor."""
        if self.buffer is None:
            return KeptMemories(_Buffer(tuple(row.unsqueeze(0) for row in rows), 1), 1)
        held = self.buffer.tensors
        if any(each.requires_grad for each in (*held, *rows)):
            return KeptMemories.of(
                *(torch.cat((each, row.unsqueeze(0))) for each, row in zip(self.rows, rows, strict=True))
            )
        buffer = self.buffer if self._ours(self.buffer) else self._larger()
        for each, row in zip(buffer.tensors, rows, strict=True):
            each[self.count] = row
        buffer.used += 1
        return KeptMemories(buffer, self.count + 1)

    def last(self, count: int) -> "KeptMemories":
        """The newest `count` of them, in memory of their own."""
        if count >= self.count:
            return self
        return KeptMemories.of(*(each[self.count - count :].clone() for each in self.rows)) if count else KeptMemories()

    def without_last(self, count: int) -> "KeptMemories":
        """All but the newest `count`."""
        left = max(0, self.count - count)
        return KeptMemories(self.buffer, left) if left else KeptMemories()

    @staticmethod
    def of(*tensors: Tensor) -> "KeptMemories":
        """A row of each tensor for a memory."""
        return KeptMemories(_Buffer(tensors, len(tensors[0])), len(tensors[0]))

    def _ours(self, buffer: _Buffer) -> bool:
        """Whether the next row is free, and may be written here."""
        first = buffer.tensors[0]
        writable = not first.is_inference() or torch.is_inference_mode_enabled()
        return writable and buffer.used == self.count < len(first)

    def _larger(self) -> _Buffer:
        size = max(FIRST_ROWS, 2 * self.count)
        larger = tuple(each.new_empty(size, *each.shape[1:]) for each in self.rows)
        for new, old in zip(larger, self.rows, strict=True):
            new[: self.count] = old
        return _Buffer(larger, self.count)


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
class DecodingState:
    """What a sequence leaves behind for its next token. Nothing in it is ever written to.

    Between two tokens its states are as `Memory.carried` leaves them.
    """

    tokens: int = 0
    block: int = 0
    """The number of the open segment."""
    writers: tuple[Writer, ...] = ()
    """The online memory is the last; before it the buckets that later segments read (`segmentation: log`)."""
    kept: KeptMemories = field(default_factory=KeptMemories)
    """Of each kept memory its matrices, its slot for the input gate and, where there are scores, its pool."""

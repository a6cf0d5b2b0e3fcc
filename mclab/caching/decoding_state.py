"""The state of a caching layer between two tokens of a sequence: the open memories and the kept ones.

`DecodingState` is the whole state. A `Writer` is one memory that is still written; `KeptMemories` no longer change.
The names of the fields are the names under which a cache is stored (models/cache.py).

Shapes: N memories, G sequences and heads folded, K key width; a matrix is [G, O, I].
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from mclab.memories.base import State

#: A full buffer is replaced by one with twice as many rows, and at least this many.
FIRST_ROWS = 4


@dataclass
class _Buffer:
    """Tensors whose first `used` rows are in use. A row in use is never written again."""

    tensors: tuple[Tensor, ...]
    used: int


@dataclass(frozen=True)
class KeptMemories:
    """The kept memories, oldest first: memory n is row n of every tensor.

    Methods that add or drop a memory return a new `KeptMemories`. It shares the storage of the rows that it has in
    common with the old one, so that the cost of a token does not grow with the number of kept memories. Where a
    gradient is wanted, everything is copied instead.
    """

    buffer: _Buffer | None = None
    count: int = 0

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """The tensors, each [N, ...]; an empty tuple before the first memory."""
        return tuple(each[: self.count] for each in self.buffer.tensors) if self.buffer else ()

    def added(self, *rows: Tensor) -> "KeptMemories":
        """These memories and one more, whose row in each tensor is given in `rows`."""
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
        """The newest `count` memories, copied, so that the others can be freed; `self` where there are no more."""
        if count >= self.count:
            return self
        return KeptMemories.of(*(each[self.count - count :].clone() for each in self.rows)) if count else KeptMemories()

    def without_last(self, count: int) -> "KeptMemories":
        """Return all memories but the newest `count`."""
        left = max(0, self.count - count)
        return KeptMemories(self.buffer, left) if left else KeptMemories()

    @staticmethod
    def of(*tensors: Tensor) -> "KeptMemories":
        """Make kept memories of `tensors`, which have one row for each memory."""
        return KeptMemories(_Buffer(tensors, len(tensors[0])), len(tensors[0]))

    def _ours(self, buffer: _Buffer) -> bool:
        """Whether the next row of `buffer` is free and may be written (inference tensors only in inference mode)."""
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
    """The first segment that is written into it."""
    tokens: int
    """How many tokens it holds."""
    state: State | None
    """None for a bucket that only sums what is pooled, because it is not written as a separate memory."""
    total: Tensor | None
    """[G, K]: the sum of the keys or inputs that are pooled; `None` if there are no scores."""


@dataclass(frozen=True)
class DecodingState:
    """The state of a sequence from which its next token continues. It is never changed in place.

    Between two calls of `decoding.advance` its memory states have the form that `Memory.carried` gives them.
    """

    tokens: int = 0
    block: int = 0
    """The number of the open segment."""
    writers: tuple[Writer, ...] = ()
    """The online memory comes last; before it come open buckets for later segments (`segmentation: log`)."""
    kept: KeptMemories = field(default_factory=KeptMemories)
    """For each kept memory its matrices, its slot for the input gate and, where there are scores, its pool."""

"""The state of a caching layer between two tokens of a sequence: the memories that are written, and the kept ones.

`DecodingState` is the whole state. A `Writer` is one memory that is still written; `KeptMemories` no longer change. The
names of the fields are those under which a cache is stored (models/cache.py).

Shapes: N memories, G sequences and heads folded, K key width; a matrix is [G, O, I].
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from mclab.memories.base import State

#: The smallest number of rows of a buffer. A full buffer is replaced by one with twice as many rows.
FIRST_ROWS = 4


@dataclass
class _Buffer:
    """Tensors whose first `used` rows are in use. A row in use is never written again."""

    tensors: tuple[Tensor, ...]
    used: int


@dataclass(frozen=True)
class KeptMemories:
    """The kept memories, oldest first: memory n is row n of every tensor.

    Methods that add or drop a memory return a new `KeptMemories`, which shares the storage of common rows with the old
    one. So the cost of a token does not grow with the number of kept memories. If a gradient is wanted, everything is
    copied instead.
    """

    buffer: _Buffer | None = None
    count: int = 0

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """The tensors, each [N, ...]; an empty tuple before the first memory."""
        return tuple(each[: self.count] for each in self.buffer.tensors) if self.buffer else ()

    def added(self, *rows: Tensor) -> "KeptMemories":
        """Return these memories and one more, whose row in each tensor is given in `rows`."""
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
        """Return a copy of the newest `count` memories, so that older ones can be freed; `self` if none is older."""
        if count >= self.count:
            return self
        return KeptMemories.of(*(each[self.count - count :].clone() for each in self.rows)) if count else KeptMemories()

    def without_last(self, count: int) -> "KeptMemories":
        """Return all memories except the newest `count`."""
        left = max(0, self.count - count)
        return KeptMemories(self.buffer, left) if left else KeptMemories()

    @staticmethod
    def of(*tensors: Tensor) -> "KeptMemories":
        """Return kept memories made of `tensors`, which have one row for each memory."""
        return KeptMemories(_Buffer(tensors, len(tensors[0])), len(tensors[0]))

    def _ours(self, buffer: _Buffer) -> bool:
        """Return whether the next row of `buffer` is free and may be written.

        Inference tensors may be written only in inference mode.
        """
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
    """The first segment that is written into this memory."""
    tokens: int
    """The number of tokens written into it so far."""
    state: State | None
    """The state; `None` for a bucket that only sums what is pooled, because it is not written as a separate memory."""
    total: Tensor | None
    """[G, K]: the sum of the keys or inputs that are pooled; `None` if there are no scores."""


@dataclass(frozen=True)
class DecodingState:
    """The state of a sequence, from which its next token continues. It is never changed in place.

    Between two calls of `decoding.advance` its memory states have the form that `Memory.carried` returns.
    """

    tokens: int = 0
    block: int = 0
    """The number of the segment that is being written."""
    writers: tuple[Writer, ...] = ()
    """The memories that are being written; the last is the online memory.

    With `segmentation: log`, buckets for later segments come before it.
    """
    kept: KeptMemories = field(default_factory=KeptMemories)
    """For each kept memory its matrices, its slot for the input gate and, if there are scores, its pool."""

"""The kept memories of a sequence that goes on: each one's matrices, and what a token compares itself with.

Shapes: N memories, G sequences and heads folded, K key width; a matrix is [G, O, I].
"""

from dataclasses import dataclass

import torch
from torch import Tensor

#: Memories that there is room for at first; it doubles.
ROOM = 4


@dataclass
class _Room:
    """Tensors whose first `used` rows are taken. A row that is taken is never written again."""

    tensors: tuple[Tensor, ...]
    used: int


@dataclass(frozen=True)
class Kept:
    """Rows of tensors, a memory each, oldest first. What adds or drops one returns another `Kept`.

    Two that grew from the same one share memory as far as they are alike, so that a token's cost does not grow with
    what is kept beside it; where a gradient is wanted all is copied.
    """

    room: _Room | None = None
    count: int = 0

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """Each tensor [N, ...]; none before the first memory."""
        return tuple(each[: self.count] for each in self.room.tensors) if self.room else ()

    def added(self, *rows: Tensor) -> "Kept":
        """With one memory more, `rows` being its row of each tensor."""
        if self.room is None:
            return Kept(_Room(tuple(row.unsqueeze(0) for row in rows), 1), 1)
        held = self.room.tensors
        if any(each.requires_grad for each in (*held, *rows)):
            return Kept.of(*(torch.cat((each, row.unsqueeze(0))) for each, row in zip(self.rows, rows, strict=True)))
        room = self.room if self._ours(self.room) else self._larger()
        for each, row in zip(room.tensors, rows, strict=True):
            each[self.count] = row
        room.used += 1
        return Kept(room, self.count + 1)

    def last(self, count: int) -> "Kept":
        """The newest `count` of them, in memory of their own."""
        if count >= self.count:
            return self
        return Kept.of(*(each[self.count - count :].clone() for each in self.rows)) if count else Kept()

    def without_last(self, count: int) -> "Kept":
        """All but the newest `count`."""
        left = max(0, self.count - count)
        return Kept(self.room, left) if left else Kept()

    @staticmethod
    def of(*tensors: Tensor) -> "Kept":
        """A row of each tensor for a memory."""
        return Kept(_Room(tensors, len(tensors[0])), len(tensors[0]))

    def _ours(self, room: _Room) -> bool:
        """Whether the next row is free, and may be written here."""
        first = room.tensors[0]
        writable = not first.is_inference() or torch.is_inference_mode_enabled()
        return writable and room.used == self.count < len(first)

    def _larger(self) -> _Room:
        size = max(ROOM, 2 * self.count)
        larger = tuple(each.new_empty(size, *each.shape[1:]) for each in self.rows)
        for new, old in zip(larger, self.rows, strict=True):
            new[: self.count] = old
        return _Room(larger, self.count)

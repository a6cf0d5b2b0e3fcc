"""Where a sequence is cut, which memories are kept, and which of them a token sees (docs/equations.md#segments).

A sequence is cut into blocks of S tokens. A kept memory spans one block or several; a token reads those that its own
block may read, and the online memory of its block. Columns of every [.., T, columns] tensor in this package are kept
memories in the order of `spans`, and in one column, that differs from token to token, the online memory.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.constants import counting, integers, once

#: Blocks from the first to the one before the last.
Span = tuple[int, int]


@dataclass(frozen=True)
class Segments(ABC):
    """Blocks of `segment` tokens; the last may be short (the caller pads, so that tensors stay rectangular)."""

    length: int
    segment: int

    @property
    def count(self) -> int:
        """Number of blocks N."""
        return -(-self.length // self.segment)

    @property
    def padding(self) -> int:
        """Tokens to add behind the sequence so that every block is full. Nothing before them can see them."""
        return self.count * self.segment - self.length

    @property
    @abstractmethod
    def spans(self) -> tuple[Span, ...]:
        """The blocks that each kept memory holds."""

    @property
    @abstractmethod
    def readers(self) -> tuple[Span, ...]:
        """The blocks whose tokens read each kept memory."""

    @property
    def runs(self) -> tuple[Span, ...]:
        """The blocks that each online memory is written over, in their order."""
        return tuple((n, n + 1) for n in range(self.count))

    @property
    @abstractmethod
    def columns(self) -> int:
        """Columns of weights and scores."""

    @property
    @abstractmethod
    def single(self) -> bool:
        """True where every kept memory is of one block and has that block's column."""

    @property
    @abstractmethod
    def most_slots(self) -> int:
        """Slots that an input gate needs."""

    @abstractmethod
    def own_column(self, device: torch.device) -> Tensor:
        """[T], padded: the column of t's online memory."""

    @abstractmethod
    def slots(self, device: torch.device) -> Tensor:
        """[columns]: the input gate's slot of each column."""

    @once
    def own(self, device: torch.device) -> Tensor:
        """[T, columns], padded: True in the column of t's online memory."""
        return self.own_column(device)[:, None] == counting(self.columns, device)

    @once
    def visible(self, device: torch.device) -> Tensor:
        """[T, columns], padded: True for t's online memory and the kept ones that it reads."""
        token = counting(self.count * self.segment, device)[:, None]
        bounds = integers(tuple(chain(*self.readers)), device).view(-1, 2) * self.segment
        past = (token >= bounds[:, 0]) & (token < bounds[:, 1])
        return self.own(device) | F.pad(past, (0, self.columns - len(self.readers)))

    @once
    def past(self, device: torch.device) -> Tensor:
        """[T, columns], padded: True for the kept memories that t reads."""
        return self.visible(device) & ~self.own(device)

    @once
    def holds(self, restarts: bool, device: torch.device) -> Tensor:
        """[kept, N]: True where a kept memory holds a block's writes; all earlier ones too where nothing restarts."""
        block = counting(self.count, device)
        bounds = integers(tuple(chain(*self.spans)), device).view(-1, 2)
        return (block >= (bounds[:, :1] if restarts else 0)) & (block < bounds[:, 1:])

    @once
    def blocks_held(self, device: torch.device) -> Tensor:
        """[kept]: of how many blocks each kept memory is."""
        return integers(tuple(end - first for first, end in self.spans), device)

    def run_of_block(self, device: torch.device) -> Tensor:
        """[N]: the number of each block's run."""
        return counting(self.count, device)

    @once
    def written(self, device: torch.device) -> Tensor:
        """[T], padded: the tokens of its own run that t's online memory holds."""
        return counting(self.count * self.segment, device) % self.segment + 1

    @once
    def _block(self, device: torch.device) -> Tensor:
        return counting(self.count * self.segment, device) // self.segment


@dataclass(frozen=True)
class ConstantSegments(Segments):
    """Every block is kept and read by all later ones (MC section 4.2); t's own column is that of its block."""

    single = True

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple((n, n + 1) for n in range(self.count - 1))

    @property
    def readers(self) -> tuple[Span, ...]:
        return tuple((n + 1, self.count) for n in range(self.count - 1))

    @property
    def columns(self) -> int:
        return self.count

    @property
    def most_slots(self) -> int:
        return self.count

    def own_column(self, device: torch.device) -> Tensor:
        return self._block(device)

    def slots(self, device: torch.device) -> Tensor:
        """Slot = block: the gate knows positions."""
        return counting(self.count, device)

    @once
    def visible(self, device: torch.device) -> Tensor:
        return self._block(device)[:, None] >= counting(self.count, device)


@dataclass(frozen=True)
class ListedSegments(Segments):
    """Segments of given lengths in their order, the last length again and again: every one is kept and read by all
    later ones. Blocks are of their greatest common divisor, a segment is a run of them; t's own column is that of its
    segment."""

    lengths: tuple[int, ...]

    single = False

    @property
    def runs(self) -> tuple[Span, ...]:
        found: list[Span] = []
        first = 0
        while first < self.count:
            tokens = self.lengths[min(len(found), len(self.lengths) - 1)]
            found.append((first, min(first + tokens // self.segment, self.count)))
            first = found[-1][1]
        return tuple(found)

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.runs[:-1]

    @property
    def readers(self) -> tuple[Span, ...]:
        return tuple((end, self.count) for _, end in self.spans)

    @property
    def columns(self) -> int:
        return len(self.runs)

    @property
    def most_slots(self) -> int:
        return self.columns

    @once
    def own_column(self, device: torch.device) -> Tensor:
        return self.run_of_block(device).unsqueeze(1).expand(-1, self.segment).flatten()

    def run_of_block(self, device: torch.device) -> Tensor:
        return integers(tuple(n for n, (first, end) in enumerate(self.runs) for _ in range(first, end)), device)

    def written(self, device: torch.device) -> Tensor:
        tokens = [range(1, (end - first) * self.segment + 1) for first, end in self.runs]
        return integers(tuple(number for each in tokens for number in each), device)

    def slots(self, device: torch.device) -> Tensor:
        """Slot = segment."""
        return counting(self.columns, device)


@dataclass(frozen=True)
class LogSegments(Segments):
    """The blocks before a block are read in buckets of 2^l, by the binary digits of its index (a Fenwick tree).

    Block 37 reads buckets of 32, 4 and 1 blocks. So a token sees at most log2 N + 1 memories. (The Memory Caching paper
    cuts the whole sequence once by its length; this cuts the prefix of every block.) The last column is the online one.
    """

    single = False

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(span for span, _ in _buckets(self.count))

    @property
    def readers(self) -> tuple[Span, ...]:
        return tuple(readers for _, readers in _buckets(self.count))

    @property
    def columns(self) -> int:
        return len(self.spans) + 1

    @property
    def most_slots(self) -> int:
        return (self.count - 1).bit_length() + 1

    @once
    def own_column(self, device: torch.device) -> Tensor:
        return torch.full((self.count * self.segment,), self.columns - 1, device=device)

    def slots(self, device: torch.device) -> Tensor:
        """Slot 0 is the online memory, slot l + 1 a bucket of 2^l blocks."""
        return integers((*((end - first).bit_length() for first, end in self.spans), 0), device)


@cache
def _buckets(blocks: int) -> tuple[tuple[Span, Span], ...]:
    """Every bucket that some block reads, with the blocks that read it; by size, then by place.

    The bucket of 2^l blocks from i 2^l on, i even, is read where digit l of a block's index is set after digits i / 2.
    """
    found = []
    size = 1
    while size < blocks:
        for first in range(0, blocks - size, 2 * size):
            found.append(((first, first + size), (first + size, min(first + 2 * size, blocks))))
        size *= 2
    return tuple(found)


#: By the name under `model.mixer.segmentation`.
SEGMENTS: dict[str, type[Segments]] = {"constant": ConstantSegments, "log": LogSegments, "listed": ListedSegments}


def segments_of(mixer: MemoryMixer, length: int) -> Segments:
    """How a mixer's keys cut a sequence."""
    if mixer.segmentation == "listed":
        return ListedSegments(length, mixer.block, mixer.segment_lengths)
    return SEGMENTS[mixer.segmentation](length, mixer.segment)

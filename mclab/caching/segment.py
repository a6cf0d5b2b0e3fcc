"""Where a sequence is cut, which memories are kept, and which of them a token sees (docs/equations.md#segments).

A sequence is cut into blocks of S tokens. A kept memory spans one or several blocks. A token reads the kept memories
that its block may read, and the online memory of its block. In every [.., T, columns] tensor of this package, column n
is kept memory n, in the order of `spans`. One column of each token, its own column, is its online memory instead; it
may differ between tokens.
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

#: Blocks [first, end): from `first` up to, but not including, `end`.
Span = tuple[int, int]


@dataclass(frozen=True)
class Segments(ABC):
    """Blocks of `segment` tokens. The last block may be short; the caller pads it, so that tensors stay rectangular.

    "[T], padded" means that T includes the padding.
    """

    length: int
    segment: int

    @property
    def count(self) -> int:
        """The number of blocks N."""
        return -(-self.length // self.segment)

    @property
    def padding(self) -> int:
        """The number of tokens to append so that every block is full. Earlier tokens cannot see the appended ones."""
        return self.count * self.segment - self.length

    @property
    @abstractmethod
    def spans(self) -> tuple[Span, ...]:
        """The blocks that each kept memory holds, [first, end)."""

    @property
    @abstractmethod
    def readers(self) -> tuple[Span, ...]:
        """The blocks whose tokens read each kept memory, [first, end)."""

    @property
    def runs(self) -> tuple[Span, ...]:
        """The blocks over which each online memory is written, [first, end), in order."""
        return tuple((n, n + 1) for n in range(self.count))

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of columns of weights and scores."""

    @property
    @abstractmethod
    def single(self) -> bool:
        """True if every kept memory holds one block, and column n belongs to block n."""

    @property
    @abstractmethod
    def most_slots(self) -> int:
        """The number of slots that an input gate needs."""

    @abstractmethod
    def own_column(self, device: torch.device) -> Tensor:
        """Return [T], padded: the column of t's online memory."""

    @abstractmethod
    def slots(self, device: torch.device) -> Tensor:
        """Return [columns]: the input gate's slot of each column."""

    @once
    def own(self, device: torch.device) -> Tensor:
        """Return [T, columns], padded: True in the column of t's online memory."""
        return self.own_column(device)[:, None] == counting(self.columns, device)

    @once
    def visible(self, device: torch.device) -> Tensor:
        """Return [T, columns], padded: True for t's online memory and the kept memories that t reads."""
        token = counting(self.count * self.segment, device)[:, None]
        bounds = integers(tuple(chain(*self.readers)), device).view(-1, 2) * self.segment
        past = (token >= bounds[:, 0]) & (token < bounds[:, 1])
        return self.own(device) | F.pad(past, (0, self.columns - len(self.readers)))

    @once
    def past(self, device: torch.device) -> Tensor:
        """Return [T, columns], padded: True for the kept memories that t reads."""
        return self.visible(device) & ~self.own(device)

    @once
    def holds(self, restarts: bool, device: torch.device) -> Tensor:
        """Return [kept, N]:

        True if a kept memory holds the writes of a block; without restarts it holds those of earlier blocks too.
        """
        block = counting(self.count, device)
        bounds = integers(tuple(chain(*self.spans)), device).view(-1, 2)
        return (block >= (bounds[:, :1] if restarts else 0)) & (block < bounds[:, 1:])

    @once
    def blocks_held(self, device: torch.device) -> Tensor:
        """Return [kept]: the number of blocks that each kept memory spans."""
        return integers(tuple(end - first for first, end in self.spans), device)

    def run_of_block(self, device: torch.device) -> Tensor:
        """Return [N]: the number of the run that each block belongs to."""
        return counting(self.count, device)

    @once
    def written(self, device: torch.device) -> Tensor:
        """Return [T], padded: the number of tokens of its run that t's online memory holds."""
        return counting(self.count * self.segment, device) % self.segment + 1

    @once
    def _block(self, device: torch.device) -> Tensor:
        return counting(self.count * self.segment, device) // self.segment


@dataclass(frozen=True)
class ConstantSegments(Segments):
    """Every block is kept and read by all later ones (MC section 4.2). A token's own column is that of its block."""

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
        """Return the slot of each column, which is its block, so that the gate knows positions."""
        return counting(self.count, device)

    @once
    def visible(self, device: torch.device) -> Tensor:
        return self._block(device)[:, None] >= counting(self.count, device)


@dataclass(frozen=True)
class ListedSegments(Segments):
    """Segments of the given `lengths`, in order; the last length repeats.

    Every segment is kept, and all later ones read it. The greatest common divisor of the lengths is the length of a
    block, and a segment is a run of blocks. A token's own column is that of its segment.
    """

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
        """Return the slot of each column, which is its segment."""
        return counting(self.columns, device)


@dataclass(frozen=True)
class LogSegments(Segments):
    """A block reads the blocks before it in buckets of 2^l blocks, by the binary digits of its index (a Fenwick tree).

    Block 37 reads buckets of 32, 4 and 1 blocks. So a token sees at most log2 N + 1 memories. The last column is the
    online memory. (The Memory Caching paper cuts the whole sequence once, by its length; here the prefix of every block
    is cut.)
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
        """Return the slot of each column: 0 for the online memory, l + 1 for a bucket of 2^l blocks."""
        return integers((*((end - first).bit_length() for first, end in self.spans), 0), device)


@cache
def _buckets(blocks: int) -> tuple[tuple[Span, Span], ...]:
    """Return every bucket that some block reads, with the blocks that read it, sorted by size and then by position.

    A bucket of 2^l blocks starts at block i 2^l with an even i. The 2^l blocks after it read it: in binary, digit l of
    their index is 1 and the digits above are i / 2.
    """
    found = []
    size = 1
    while size < blocks:
        for first in range(0, blocks - size, 2 * size):
            found.append(((first, first + size), (first + size, min(first + 2 * size, blocks))))
        size *= 2
    return tuple(found)


#: Ways to cut by their name under `model.mixer.segmentation`.
SEGMENTS: dict[str, type[Segments]] = {"constant": ConstantSegments, "log": LogSegments, "listed": ListedSegments}


def segments_of(mixer: MemoryMixer, length: int) -> Segments:
    """Return the segments into which the keys of `mixer` cut a sequence of `length` tokens."""
    if mixer.segmentation == "listed":
        return ListedSegments(length, mixer.block, mixer.segment_lengths)
    return SEGMENTS[mixer.segmentation](length, mixer.segment)

"""Cut the segments of a sequence into chunks, and decide which memories are written in one batch.

Shapes: G = R*B*H folded, N segments, S tokens in a segment, n chunks in a segment, C tokens in a chunk, X and M as in
kernels/fastweight/chunkwise.py (X*M = G*N*n).

See docs/equations.md#chunk-form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight import ranges
from mclab.memories.base import Init, Segments, Tokens


class Cut(Protocol):
    """A sequence in equal segments. `Segments` and `Pieces` both have this interface."""

    @property
    def segment(self) -> int:
        """The number of tokens in a segment."""

    @property
    def count(self) -> int:
        """The number of segments."""


@dataclass(frozen=True)
class Pieces:
    """`count` parts of a sequence, one after the other, of `segment` tokens each."""

    segment: int
    count: int


@dataclass(frozen=True)
class Chunks:
    """The chunks of a sequence.

    Every segment begins a new chunk, and its last chunk may be short. `keep` has the numbers of those of the M chunks
    whose final weights are wanted.
    """

    segments: Cut
    chunk: int
    restarts: bool
    keep: tuple[int, ...]

    @property
    def each(self) -> int:
        """The number n of chunks in a segment."""
        return -(-self.segments.segment // self.chunk)

    @property
    def ends(self) -> list[int]:
        """The position of the last token in each of the M chunks that are written one after the other."""
        last = self.segments.segment - (self.each - 1) * self.chunk - 1
        one = [self.chunk - 1] * (self.each - 1) + [last]
        return one if self.restarts else one * self.segments.count

    def place_after(self, blocks: int) -> int:
        """Return the index in `keep` of the weights after the first `blocks` segments, which must not restart."""
        return self.keep.index(self.each * blocks - 1)

    def cut(self, x: Tensor) -> Tensor:
        """Cut [G, T, ...] into [M, X, C, ...], with zeros at the end of short chunks."""
        x = x.unflatten(1, (self.segments.count, self.segments.segment))
        short = self.each * self.chunk - self.segments.segment
        if short:
            x = F.pad(x, (*(0, 0) * (x.dim() - 3), 0, short))
        x = x.unflatten(2, (self.each, self.chunk))
        x = x.flatten(0, 1) if self.restarts else x.flatten(1, 2)
        return x.transpose(0, 1).contiguous()

    def joined(self, y: Tensor) -> Tensor:
        """Join [M, X, C, ...] to [G, T, ...]: the inverse of `cut`."""
        y = y.transpose(0, 1).reshape(-1, self.segments.count, self.each * self.chunk, *y.shape[3:])
        return y[:, :, : self.segments.segment].flatten(1, 2)


@dataclass(frozen=True)
class RunChunks(Chunks):
    """Chunks of segments that differ in length and do not restart; `bounds` are the tokens of each chunk."""

    bounds: ranges.Bounds

    @property
    def ends(self) -> list[int]:
        return [end - first - 1 for first, end in self.bounds]

    def place_after(self, blocks: int) -> int:
        token = blocks * self.segments.segment
        return self.keep.index(next(m for m, (_, end) in enumerate(self.bounds) if end == token))

    def cut(self, x: Tensor) -> Tensor:
        parts = (F.pad(x[:, a:b], (*(0, 0) * (x.dim() - 2), 0, self.chunk - (b - a))) for a, b in self.bounds)
        return torch.stack(list(parts))

    def joined(self, y: Tensor) -> Tensor:
        return torch.cat([each[:, : end + 1] for each, end in zip(y, self.ends, strict=True)], 1)


@dataclass(frozen=True)
class Bucket:
    """Memories of the same length that are written in one batch; the buckets of one size are such memories.

    `numbers` are their numbers among the online memories or, for memories that are kept in addition to the online ones,
    their columns. `bounds` are the tokens [first, end) of each memory; `bounds=None` means the whole sequence.
    """

    numbers: tuple[int, ...]
    bounds: ranges.Bounds | None
    chunks: Chunks

    def take(self, x: Tensor) -> Tensor:
        """Return the tokens of these memories in x [G, T] or [G, T, D], concatenated memory by memory along T."""
        if self.bounds is None:
            return x
        return ranges.gathered(x, self.bounds) if x.dim() == 3 else self.take(x.unsqueeze(-1)).squeeze(-1)

    def tokens(self, tokens: Tokens) -> Tokens:
        """Return keys, values and rates of the tokens of these memories, as `take` does."""
        return Tokens(self.take(tokens.k), self.take(tokens.v), tuple(self.take(rate) for rate in tokens.rates))


def chunks_of(segments: Segments, chunk: int, init: Init) -> tuple[list[Bucket], list[Bucket]]:
    """Return two lists: memories that together hold every token once, and further kept memories.

    A chunk has `chunk` tokens, or those of a whole segment if that is shorter.
    """
    if len(segments.runs) < segments.count:
        return (_restarting(segments, chunk) if init.restarts else [_running(segments, chunk)]), []
    S, spans, everything = segments.segment, segments.spans, tuple(range(segments.count))
    each = -(-S // min(chunk, S))
    if not init.restarts:
        keep = tuple(each * end - 1 for end in sorted({end for _, end in spans}))
        return [Bucket(everything, None, Chunks(segments, min(chunk, S), False, keep))], []
    lengths = [end - first for first, end in spans]
    buckets = []
    for length in sorted({*lengths} - {1}):
        columns = tuple(n for n, own in enumerate(lengths) if own == length)
        buckets.append(_side_by_side([spans[n] for n in columns], columns, S, chunk, True))
    keep = (each - 1,) if 1 in lengths else ()
    return [Bucket(everything, None, Chunks(segments, min(chunk, S), True, keep))], buckets


def _restarting(segments: Segments, chunk: int) -> list[Bucket]:
    """Return the memories of runs of different lengths, each written from W^0, with one `Bucket` for each length."""
    lengths, made = [end - first for first, end in segments.runs], []
    for length in sorted(set(lengths)):
        numbers = tuple(n for n, own in enumerate(lengths) if own == length)
        kept = numbers[0] < len(segments.spans)
        made.append(_side_by_side([segments.runs[n] for n in numbers], numbers, segments.segment, chunk, kept))
    return made


def _side_by_side(spans: Sequence[tuple[int, int]], numbers: tuple[int, ...], S: int, chunk: int, kept: bool) -> Bucket:
    tokens = (spans[0][1] - spans[0][0]) * S
    own = min(chunk, tokens)
    keep = (-(-tokens // own) - 1,) if kept else ()
    bounds = [(first * S, end * S) for first, end in spans]
    return Bucket(numbers, bounds, Chunks(Pieces(tokens, len(spans)), own, True, keep))


def _running(segments: Segments, chunk: int) -> Bucket:
    """Return the memories of runs of different lengths that do not restart, as one `Bucket`.

    Each starts where the last one ended.
    """
    S = segments.segment
    bounds: list[tuple[int, int]] = []
    keep: list[int] = []
    for first, end in segments.runs:
        starts = range(first * S, end * S, chunk)
        bounds += [(start, min(start + chunk, end * S)) for start in starts]
        keep.append(len(bounds) - 1)
    longest = max(end - first for first, end in bounds)
    return Bucket(
        tuple(range(len(segments.runs))), None, RunChunks(segments, longest, False, tuple(keep[:-1]), tuple(bounds))
    )

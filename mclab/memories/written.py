"""A sequence written into fast weights: the states at segment ends, and every token's own weights applied in chunks.

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
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.net import Net
from mclab.memories import chosen
from mclab.memories.base import Init, Segments, Tokens


@dataclass(frozen=True)
class Fold:
    """Puts the sequences that share a replica's and head's parameters side by side: from [R*B*H, ...] to [R*H*B, ...].
    Those of several segments, which follow [G] when they restart, stay beside each other."""

    replicas: int
    heads: int

    def __call__(self, x: Tensor) -> Tensor:
        each: Tensor = x.unflatten(0, (self.replicas, -1, self.heads))
        return each.transpose(1, 2).flatten(0, 2)

    def back(self, x: Tensor) -> Tensor:
        """The order that it was."""
        each: Tensor = x.unflatten(0, (self.replicas, self.heads, -1))
        return each.transpose(1, 2).flatten(0, 2)


class Cut(Protocol):
    """A sequence in equal segments; what Segments are, and what `Pieces` are."""

    @property
    def segment(self) -> int:
        """Tokens in a segment."""

    @property
    def count(self) -> int:
        """Number of segments."""


@dataclass(frozen=True)
class Pieces:
    """Parts of a sequence, one after the other."""

    segment: int
    count: int


@dataclass(frozen=True)
class Chunks:
    """How the segments of a sequence are cut into chunks: chunks restart at each segment, the last may be short.
    `keep` are those of the M chunks whose final weights are wanted."""

    segments: Cut
    chunk: int
    restarts: bool
    keep: tuple[int, ...]

    @property
    def each(self) -> int:
        """Chunks in a segment, n."""
        return -(-self.segments.segment // self.chunk)

    @property
    def ends(self) -> list[int]:
        """The last token's place in each of the M chunks that are written one after the other."""
        last = self.segments.segment - (self.each - 1) * self.chunk - 1
        one = [self.chunk - 1] * (self.each - 1) + [last]
        return one if self.restarts else one * self.segments.count

    def cut(self, x: Tensor) -> Tensor:
        """[G, T, ...] to [M, X, C, ...], zeros where a chunk is short."""
        x = x.unflatten(1, (self.segments.count, self.segments.segment))
        short = self.each * self.chunk - self.segments.segment
        if short:
            x = F.pad(x, (*(0, 0) * (x.dim() - 3), 0, short))
        x = x.unflatten(2, (self.each, self.chunk))
        x = x.flatten(0, 1) if self.restarts else x.flatten(1, 2)
        return x.transpose(0, 1).contiguous()

    def joined(self, y: Tensor) -> Tensor:
        """[M, X, C, ...] to [G, T, ...]."""
        y = y.transpose(0, 1).reshape(-1, self.segments.count, self.each * self.chunk, *y.shape[3:])
        return y[:, :, : self.segments.segment].flatten(1, 2)


@dataclass(frozen=True)
class Bucket:
    """Kept memories of several segments each, written by themselves: `columns` are theirs, `bounds` their tokens."""

    columns: tuple[int, ...]
    bounds: ranges.Bounds
    chunks: Chunks

    def tokens(self, tokens: Tokens) -> Tokens:
        """Those tokens, one memory's behind the other's."""
        rates = (self._own(rate) for rate in tokens.rates)
        return Tokens(ranges.gathered(tokens.k, self.bounds), ranges.gathered(tokens.v, self.bounds), tuple(rates))

    def _own(self, rate: Tensor) -> Tensor:
        """[G, T] or, of every channel its own, [G, T, K]."""
        if rate.dim() == 3:
            return ranges.gathered(rate, self.bounds)
        return ranges.gathered(rate.unsqueeze(-1), self.bounds).squeeze(-1)


def chunks_of(segments: Segments, chunk: int, init: Init) -> tuple[Chunks, list[Bucket]]:
    """Chunks of `chunk` tokens, or of a whole segment where that is shorter; what is kept beside segments' ends."""
    S, spans = segments.segment, segments.spans
    each = -(-S // min(chunk, S))
    if not init.restarts:
        keep = tuple(each * end - 1 for end in sorted({end for _, end in spans}))
        return Chunks(segments, min(chunk, S), False, keep), []
    lengths = [end - first for first, end in spans]
    buckets = []
    for length in sorted({*lengths} - {1}):
        columns = tuple(n for n, own in enumerate(lengths) if own == length)
        pieces = Pieces(length * S, len(columns))
        own = Chunks(pieces, min(chunk, length * S), True, (-(-length * S // min(chunk, length * S)) - 1,))
        buckets.append(Bucket(columns, [(spans[n][0] * S, spans[n][1] * S) for n in columns], own))
    return Chunks(segments, min(chunk, S), True, (each - 1,) if 1 in lengths else ()), buckets


@dataclass(frozen=True)
class FastWritten:
    """`net` has the gain of every sequence, [G, 1, V]; `buckets` come with what is written into them. All of it is in
    the order of `fold`."""

    net: Net
    segments: Segments
    source: Source
    chunks: Chunks
    buckets: Sequence[tuple[Bucket, Source]]
    fold: Fold

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Sum of weight times M(q)."""
        q_GTK, weights_GTN = self.fold(q_GTK), None if weights_GTN is None else self.fold(weights_GTN)
        return self.fold.back(self._read_all(q_GTK, *self._read_own(q_GTK), weights_GTN))

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        """Sum of weight times M(q) over the memories named, or over all where that costs less."""
        q_GTK, weights_GTJ, columns_GTJ = (self.fold(x) for x in (q_GTK, weights_GTJ, columns_GTJ))
        own_GTV, made = self._read_own(q_GTK)
        layers, place = self._states(made)
        if self._few(layers, columns_GTJ):
            y = chosen.read(self.net, layers, place, self.segments, q_GTK, own_GTV, weights_GTJ, columns_GTJ)
        else:
            weights_GTN = chosen.spread(weights_GTJ, columns_GTJ, self.segments.columns)
            y = self._read_all(q_GTK, own_GTV, made, weights_GTN)
        return self.fold.back(y)

    def _few(self, layers: Sequence[Tensor], columns_GTJ: Tensor) -> bool:
        """Whether reading the kept memories named costs less than reading all."""
        if not layers:
            return False
        G, k, Q = len(columns_GTJ), columns_GTJ.shape[2] - 1, layers[0].shape[1]
        size = sum(layer[0, 0].numel() for layer in layers)
        return chosen.cost_of_chosen(self.segments, G, k, Q, size) < chosen.cost_of_all(self.segments, G, size)

    def _read_own(self, q_GTK: Tensor) -> tuple[Tensor, list[Tensor]]:
        """What every token's own weights give, and each layer's weights after the chunks to keep."""
        h, made = self.source.read(self.chunks.cut(q_GTK))
        return self.net.finish(q_GTK, self.chunks.joined(h)), made

    def _read_all(self, q_GTK: Tensor, own_GTV: Tensor, made: list[Tensor], weights_GTN: Tensor | None) -> Tensor:
        y = self._own(own_GTV, weights_GTN)
        if not made:
            return y
        h = x = ranges.gathered(q_GTK, self._readers)
        for i, kept in enumerate(self._kept(made)):
            h = self._apply_kept(kept, F.gelu(h) if i else h)
        return ranges.added(y, self.net.finish(x, h), weights_GTN, self._readers)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Layer by layer the weighted sum of what the memories that a token sees do to their input."""
        q_GTK, weights_GTN = self.fold(q_GTK), None if weights_GTN is None else self.fold(weights_GTN)
        return self.fold.back(self._read_mixed(q_GTK, weights_GTN))

    def _read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        layers, h = self.source.layers(), q_GTK
        kept = self._kept([layer.kept for layer in layers if layer.kept is not None])
        for i, layer in enumerate(layers):
            x = F.gelu(h) if i else h
            h = self._own(self.chunks.joined(layer.online(self.chunks.cut(x))), weights_GTN)
            if kept:
                past = self._apply_kept(kept[i], ranges.gathered(x, self._readers))
                h = ranges.added(h, past, weights_GTN, self._readers)
        return self.net.finish(q_GTK, h)

    def _kept(self, made: Sequence[Tensor]) -> list[list[Tensor]]:
        """Each layer's weights in every kept memory, [G, O, I] each."""
        layers, place = self._states(made)
        return [[each[i] for i in place] for each in (layer.unbind(1) for layer in layers)]

    def _states(self, made: Sequence[Tensor]) -> tuple[list[Tensor], list[int]]:
        """From each layer's weights after the chunks to keep to those of all kept memories side by side, [G, Q, O, I],
        and each one's place among the Q: it began with its last segment, goes on over it, or was written by itself."""
        ends = [end - 1 for _, end in self.segments.spans]
        if not self.chunks.restarts:
            return list(made), [self.chunks.keep.index(self.chunks.each * (end + 1) - 1) for end in ends]
        parts = [[_each(layer, self.chunks)] for layer in made]
        for bucket, source in self.buckets:
            first = sum(part.shape[1] for part in parts[0])
            for n, column in enumerate(bucket.columns):
                ends[column] = first + n
            for part, layer in zip(parts, source.layers(), strict=True):
                part.append(_each(layer.kept, bucket.chunks))
        return [_side_by_side(part) for part in parts], ends

    @property
    def _readers(self) -> list[tuple[int, int]]:
        """The tokens that read each kept memory."""
        S = self.segments.segment
        return [(first * S, end * S) for first, end in self.segments.readers]

    def _apply_kept(self, kept: Sequence[Tensor], x_GLI: Tensor) -> Tensor:
        """One layer of every kept memory, each to what its readers have: [G, L, I] to [G, L, O]."""
        parts = x_GLI.split([end - first for first, end in self._readers], 1)
        return torch.cat([torch.bmm(x, w.mT) for x, w in zip(parts, kept, strict=True)], 1)

    def _own(self, y_GTV: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """What the online memories give, times their weights."""
        if weights_GTN is None:
            return y_GTV
        column = self.segments.own_column(y_GTV.device)
        return y_GTV * weights_GTN.gather(-1, column[None, :, None].expand(weights_GTN.shape[0], -1, 1))


def _each(layer: Tensor | None, chunks: Chunks) -> Tensor:
    """From the weights after the last chunk of segments that restart [G * N, 1, O, I] to each one's, [G, N, O, I]."""
    assert layer is not None
    own: Tensor = layer[:, 0].unflatten(0, (-1, chunks.segments.count))
    return own


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """[G, ., O, I] each to [G, Q, O, I], stored as the first is."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat(list(parts), 1) if parts[0].stride(-1) == 1 else torch.cat([x.mT for x in parts], 1).mT

"""A sequence written into fast weights: the states at segment ends, and every token's own weights applied in chunks.

Shapes: G = R*B*H folded, N segments, S tokens in a segment, n chunks in a segment, C tokens in a chunk, X and M as in
kernels/fastweight/chunkwise.py (X*M = G*N*n).

See docs/equations.md#chunk-form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.constants import once
from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight import ranges
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.net import Net
from mclab.memories import sparse_read
from mclab.memories.base import Init, Segments, Tokens
from mclab.memories.chunks import Bucket, Chunks, chunks_of


@dataclass(frozen=True, eq=False)
class Fold:
    """Reorder [R*B*H, ...] to [R*H*B, ...], so that sequences with the parameters of one replica and head are adjacent.

    With segments that restart, whose axis follows G, all segments of these sequences stay adjacent too.
    """

    replicas: int
    heads: int

    def __call__(self, x: Tensor) -> Tensor:
        each: Tensor = x.unflatten(0, (self.replicas, -1, self.heads))
        return each.transpose(1, 2).flatten(0, 2)

    def undo(self, x: Tensor) -> Tensor:
        """Reorder [R*H*B, ...] to [R*B*H, ...]."""
        each: Tensor = x.unflatten(0, (self.replicas, self.heads, -1))
        return each.transpose(1, 2).flatten(0, 2)


@dataclass(frozen=True)
class FastWritten:
    """A written sequence of fast weights.

    `net` has the gain of every sequence, [G, 1, V]. `parts` hold each token once; `buckets` are the kept memories that
    are written separately. Each part and bucket comes with the source that writes it. All tensors are in the order of
    `fold`.
    """

    net: Net
    segments: Segments
    parts: Sequence[tuple[Bucket, Source]]
    buckets: Sequence[tuple[Bucket, Source]]
    fold: Fold

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Return the sum of weight times M(q)."""
        q_GTK, weights_GTN = self.fold(q_GTK), None if weights_GTN is None else self.fold(weights_GTN)
        return self.fold.undo(self._read_all(q_GTK, *self._read_own(q_GTK), weights_GTN))

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        """Return the sum of weight times M(q) over the chosen memories. All memories are read if that costs less."""
        q_GTK, weights_GTJ, columns_GTJ = (self.fold(x) for x in (q_GTK, weights_GTJ, columns_GTJ))
        own_GTV, made = self._read_own(q_GTK)
        layers, place = self._states(made)
        if self._sparse_is_cheaper(layers, columns_GTJ):
            y = sparse_read.read(self.net, layers, place, self.segments, q_GTK, own_GTV, weights_GTJ, columns_GTJ)
        else:
            weights_GTN = sparse_read.spread(weights_GTJ, columns_GTJ, self.segments.columns)
            y = self._read_all(q_GTK, own_GTV, made, weights_GTN)
        return self.fold.undo(y)

    def _sparse_is_cheaper(self, layers: Sequence[Tensor], columns_GTJ: Tensor) -> bool:
        """Return whether it costs less to read the chosen kept memories than to read all kept memories."""
        if not layers:
            return False
        G, k, Q = columns_GTJ.shape[0], columns_GTJ.shape[2] - 1, layers[0].shape[1]
        size = sum(layer[0, 0].numel() for layer in layers)
        on = costs(columns_GTJ.device.type)
        sparse = sparse_read.cost_of_chosen(self.segments, G, k, Q, size, on)
        return sparse < sparse_read.cost_of_all(self.segments, G, size, on)

    def _read_own(self, q_GTK: Tensor) -> tuple[Tensor, list[list[Tensor]]]:
        """Return the read [G, T, V] of the online memories, and each part's weights by layer after kept chunks."""
        each = [source.read(part.chunks.cut(part.take(q_GTK))) for part, source in self.parts]
        return self.net.finish(q_GTK, self._joined([h for h, _ in each])), [made for _, made in each]

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Join the outputs of the parts' chunks to [G, T, ...], in the order of the tokens."""
        each = [part.chunks.joined(y) for (part, _), y in zip(self.parts, parts, strict=True)]
        bounds = [own for part, _ in self.parts for own in part.bounds or ()]
        if not bounds:
            return each[0]
        return torch.cat(each, 1).index_select(1, _places(tuple(bounds), each[0].device))

    def _read_all(self, q_GTK: Tensor, own_GTV: Tensor, made: list[list[Tensor]], weights_GTN: Tensor | None) -> Tensor:
        y = self._own(own_GTV, weights_GTN)
        if not any(made):
            return y
        h = x = ranges.gathered(q_GTK, self._readers)
        for i, kept in enumerate(self._kept(made)):
            h = self._apply_kept(kept, F.gelu(h) if i else h)
        return ranges.added(y, self.net.finish(x, h), weights_GTN, self._readers)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Read the mixed memory: each of its layers is the weighted sum of this layer over the visible memories."""
        q_GTK, weights_GTN = self.fold(q_GTK), None if weights_GTN is None else self.fold(weights_GTN)
        return self.fold.undo(self._read_mixed(q_GTK, weights_GTN))

    def _read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        each, h = [source.layers() for _, source in self.parts], q_GTK
        kept = self._kept([[layer.kept for layer in layers if layer.kept is not None] for layers in each])
        for i, layers in enumerate(zip(*each, strict=True)):
            x = F.gelu(h) if i else h
            cut = [part.chunks.cut(part.take(x)) for part, _ in self.parts]
            h = self._joined([layer.online(own) for layer, own in zip(layers, cut, strict=True)])
            h = self._own(h, weights_GTN)
            if kept:
                past = self._apply_kept(kept[i], ranges.gathered(x, self._readers))
                h = ranges.added(h, past, weights_GTN, self._readers)
        return self.net.finish(q_GTK, h)

    def _kept(self, made: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """Return for each layer the weights [G, O, I] of every kept memory."""
        layers, place = self._states(made)
        return [[each[i] for i in place] for each in (layer.unbind(1) for layer in layers)]

    def _states(self, made: Sequence[Sequence[Tensor]]) -> tuple[list[Tensor], list[int]]:
        """Return for each layer the weights [G, Q, O, I] of all kept memories, and the index of each kept memory among
        the Q.

        `made` has the weights of the parts' layers after the chunks to keep. A kept memory is an online memory that
        began with its last segment, one that ran over several segments, or a memory that was written separately.
        """
        if not self.parts[0][0].chunks.restarts:
            chunks = self.parts[0][0].chunks
            return list(made[0]), [chunks.place_after(end) for _, end in self.segments.spans]
        place: dict[tuple[int, int], int] = {}
        parts: list[list[Tensor]] = []
        alone = [(bucket, [layer.kept for layer in source.layers()]) for bucket, source in self.buckets]
        online = zip((part for part, _ in self.parts), made, strict=True)
        for bucket, layers, spans in (
            *((part, own, self.segments.runs) for part, own in online),
            *((bucket, own, self.segments.spans) for bucket, own in alone),
        ):
            if layers:
                first = sum(part.shape[1] for part in parts[0]) if parts else 0
                place |= {spans[number]: first + n for n, number in enumerate(bucket.numbers)}
                parts = parts or [[] for _ in layers]
                for part, layer in zip(parts, layers, strict=True):
                    part.append(_each(layer, bucket.chunks))
        return [_side_by_side(part) for part in parts], [place[span] for span in self.segments.spans]

    @property
    def _readers(self) -> list[tuple[int, int]]:
        """The tokens [first, end) that read each kept memory."""
        S = self.segments.segment
        return [(first * S, end * S) for first, end in self.segments.readers]

    def _apply_kept(self, kept: Sequence[Tensor], x_GLI: Tensor) -> Tensor:
        """Apply one layer of each kept memory to the inputs of its readers: [G, L, I] to [G, L, O]."""
        parts = x_GLI.split([end - first for first, end in self._readers], 1)
        return torch.cat([torch.bmm(x, w.mT) for x, w in zip(parts, kept, strict=True)], 1)

    def _own(self, y_GTV: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Return the outputs of the online memories, times their weights."""
        if weights_GTN is None:
            return y_GTV
        column = self.segments.own_column(y_GTV.device)
        return y_GTV * weights_GTN.gather(-1, column[None, :, None].expand(weights_GTN.shape[0], -1, 1))


def write_in_chunks(
    tokens: Tokens,
    segments: Segments,
    init: Init,
    chunk: int,
    source: Callable[[Tokens, Chunks], Source],
    net: Net,
    fold: Fold,
) -> FastWritten:
    """Write a sequence in chunks of at most `chunk` tokens. `source` writes tokens that are cut into given chunks.

    `tokens` and the gain of `net` are in the order of `fold`.
    """
    parts, buckets = (
        [(each, source(each.tokens(tokens), each.chunks)) for each in some] for some in chunks_of(segments, chunk, init)
    )
    return FastWritten(net, segments, parts, buckets, fold)


@once
def _places(bounds: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:
    """Return [T]: the position of each token in the ranges `bounds`, which are joined in their order."""
    return torch.cat([torch.arange(first, end, device=device) for first, end in bounds]).argsort()


def _each(layer: Tensor | None, chunks: Chunks) -> Tensor:
    """Return the weights after the last chunk of segments that restart: [G * N, 1, O, I] to [G, N, O, I]."""
    assert layer is not None
    own: Tensor = layer[:, 0].unflatten(0, (-1, chunks.segments.count))
    return own


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors [G, ., O, I] to [G, Q, O, I], stored in the layout of the first."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat(list(parts), 1) if parts[0].stride(-1) == 1 else torch.cat([x.mT for x in parts], 1).mT

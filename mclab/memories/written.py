"""A sequence written into fast weights: the states at segment ends, and every token's own weights applied in chunks.

Shapes: G = R*B*H folded, N segments, S tokens in a segment, n chunks in a segment, C tokens in a chunk, X and M as in
kernels/fastweight/chunkwise.py (X*M = G*N*n, in that order).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight.chunkwise import Layer, State
from mclab.kernels.fastweight.net import Net
from mclab.memories.base import Init, Segments


@dataclass(frozen=True)
class Chunks:
    """How the segments of a sequence are cut into chunks: chunks restart at each segment, the last may be short."""

    segments: Segments
    chunk: int
    restarts: bool

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
        """[G, T, ...] to [X, M, C, ...], zeros where a chunk is short."""
        x = x.unflatten(1, (self.segments.count, self.segments.segment))
        short = self.each * self.chunk - self.segments.segment
        if short:
            x = F.pad(x, (*(0, 0) * (x.dim() - 3), 0, short))
        x = x.unflatten(2, (self.each, self.chunk))
        return x.flatten(0, 1) if self.restarts else x.flatten(1, 2)

    def joined(self, y: Tensor) -> Tensor:
        """[X, M, C, ...] to [G, T, ...]."""
        y = y.reshape(-1, self.segments.count, self.each * self.chunk, *y.shape[3:])
        return y[:, :, : self.segments.segment].flatten(1, 2)

    def kept(self, states: Sequence[State], initial: Sequence[Tensor]) -> list[Tensor]:
        """Each layer's weights at the segments' ends, [G, N, O, I], from the states after each of the M chunks."""
        if self.restarts:
            weights = states[-1].weights(initial)
            return [w.unflatten(0, (-1, self.segments.count)) for w in weights]
        finals = [state.weights(initial) for state in states[self.each - 1 :: self.each]]
        return [torch.stack(layer, 1) for layer in zip(*finals, strict=True)]


def chunks_of(segments: Segments, chunk: int, init: Init) -> Chunks:
    """Chunks of `chunk` tokens, or of a whole segment where that is shorter."""
    return Chunks(segments, min(chunk, segments.segment), init.restarts)


@dataclass(frozen=True)
class FastWritten:
    """`kept` are the weights at segment ends, one [G, N, O, I] a layer; `net` has the gain of every sequence, [G, 1, V]."""

    net: Net
    layers: Sequence[Layer]
    kept: Sequence[Tensor]
    chunks: Chunks

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Sum of weight times M(q)."""
        y = self.net.read([self._online(layer) for layer in self.layers], q_GTK)
        if weights_GTN is not None:
            y = y * self._own(weights_GTN)
        return self._add_past(y, q_GTK, weights_GTN, self._kept_read)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Layer by layer the weighted sum of what the memories that a token sees do to their input."""
        return self.net.read([self._mixed(i, weights_GTN) for i in range(len(self.layers))], q_GTK)

    def _mixed(self, i: int, weights_GTN: Tensor | None) -> Callable[[Tensor], Tensor]:
        online, kept = self._online(self.layers[i]), self.kept[i]

        def mixed(x: Tensor) -> Tensor:
            y = online(x)
            if weights_GTN is not None:
                y = y * self._own(weights_GTN)
            return self._add_past(y, x, weights_GTN, lambda n, later: later @ kept[:, n].mT)

        return mixed

    def _online(self, layer: Layer) -> Callable[[Tensor], Tensor]:
        return lambda x: self.chunks.joined(layer.online(self.chunks.cut(x)))

    def _kept_read(self, n: int, q: Tensor) -> Tensor:
        return self.net.read([lambda x, w=kept[:, n]: x @ w.mT for kept in self.kept], q)

    def _own(self, weights_GTN: Tensor) -> Tensor:
        """[G, T, 1]: the weight of each token's online memory."""
        N, S = self.chunks.segments.count, self.chunks.segments.segment
        block = torch.arange(N, device=weights_GTN.device).repeat_interleave(S)
        return weights_GTN.gather(-1, block[None, :, None].expand(weights_GTN.shape[0], -1, 1))

    def _add_past(
        self, y: Tensor, x: Tensor, weights_GTN: Tensor | None, read: Callable[[int, Tensor], Tensor]
    ) -> Tensor:
        """`y` and, for each kept memory, its read by the tokens of later segments."""
        S = self.chunks.segments.segment
        past: Tensor | None = None
        for n in reversed(range(self.chunks.segments.count - 1)):
            own = read(n, x[:, (n + 1) * S :])
            if weights_GTN is not None:
                own = own * weights_GTN[:, (n + 1) * S :, n, None]
            past = own if past is None else torch.cat((own[:, :S], own[:, S:] + past), 1)
        return y if past is None else torch.cat((y[:, :S], y[:, S:] + past), 1)

"""The vector memory: M_t = M_{t-1} + k_t from a learned b, read M * q (MC, arXiv 2602.24281; V = K).

With segments of one token, a context gate and grm it is q * (b + softmax attention of u over the keys).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.layers import Constant, parameter
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written


@dataclass(frozen=True)
class VectorWritten:
    """`online` [G, T, K] is every token's own memory, `kept` [G, N, K] the segments' final ones."""

    online: Tensor
    kept: Tensor
    segments: Segments

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        block = torch.arange(self.segments.count, device=q_GTK.device).repeat_interleave(self.segments.segment)
        past = block[:, None] > torch.arange(self.segments.count, device=q_GTK.device)
        if weights_GTN is None:
            return q_GTK * (self.online + past.to(q_GTK.dtype) @ self.kept)
        own = weights_GTN.gather(-1, block[None, :, None].expand(q_GTK.shape[0], -1, 1))
        return q_GTK * (own * self.online + (weights_GTN * past) @ self.kept)

    # The memory acts linearly: mixing memories and mixing reads are the same sum.
    read_mixed = read


class VectorMemory(Memory):
    """Sums the keys."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.bias = parameter(replicas, heads, width // heads, init=Constant(0.0), decays=False)

    def initial(self, tokens: Tokens) -> State:
        return State((self._first(tokens),))

    def step(self, state: State, token: Tokens) -> State:
        return State((state.weights[0] + token.k,))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return state.weights[0] * q_GK

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        first = self._first(tokens)[:, None]
        if init.restarts:
            own = tokens.k.unflatten(1, (segments.count, segments.segment)).cumsum(2)
            online = own.flatten(1, 2) + first
        else:
            online = tokens.k.cumsum(1) + first
        return VectorWritten(online, online[:, segments.segment - 1 :: segments.segment], segments)

    def _first(self, tokens: Tokens) -> Tensor:
        R, H, K = self.bias.shape
        return self.bias.unsqueeze(1).expand(R, tokens.k.shape[0] // (R * H), H, K).flatten(0, 2)

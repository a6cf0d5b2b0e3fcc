"""The base of linear memories that forget: RetNet, SWLA and Mamba-2.

Shapes as in memories/base.py; chunks as in memories/chunks.py: M chunks, X folded batch, J writes.

See docs/equations.md#chunk-form.
"""

from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.kernels.fastweight import chunkwise
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.rates import Coefficients
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.chunks import Chunks
from mclab.memories.fast_weights import Fold, write_in_chunks

#: The number of tokens in a chunk. The result does not depend on it.
CHUNK = 64


class DecayedMemory(Memory):
    """A memory of depth 1 that starts at zero. What a token writes does not depend on the memory's state."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.heads, self.looks_back = heads, mixer.rule.lookback > 0

    @abstractmethod
    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        """Return the coefficients of the chunk form."""

    def writes(self, tokens: Tokens, chunks: Chunks) -> tuple[Tensor, Tensor]:
        """Return keys [M, X, J, K] and values [M, X, J, V] of the writes that the tokens of each chunk see."""
        return chunks.cut(tokens.k), chunks.cut(tokens.v)

    def initial(self, tokens: Tokens) -> State:
        zero_GVK = tokens.k.new_zeros(tokens.k.shape[0], tokens.v.shape[-1], tokens.k.shape[-1])
        return State((zero_GVK,), window=(torch.zeros_like(tokens.k[:, 0]), torch.zeros_like(tokens.v[:, 0])))

    def carried(self, state: State) -> State:
        return replace(state, window=state.window * self.looks_back)

    def resumed(self, carried: State, initial: State) -> State:
        return replace(carried, window=carried.window or initial.window)

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        return write_in_chunks(tokens, segments, init, CHUNK, self._source, Net(None, "dot"), Fold(1, 1))

    def _source(self, tokens: Tokens, chunks: Chunks) -> Source:
        keys, values = self.writes(tokens, chunks)
        return chunkwise.Accumulation(keys, values, self.coefficients(tokens, chunks), chunks.ends, chunks.keep)


def stepped(state: State, alpha_G: Tensor, writes: list[tuple[Tensor, Tensor, Tensor]], token: Tokens) -> State:
    """Return M_t = alpha M_{t-1} + the sum of weight v k^T over `writes` (weight [G], v, k)."""
    M_GVK = alpha_G[:, None, None] * state.weights[0]
    for weight_G, v_GV, k_GK in writes:
        M_GVK = M_GVK + weight_G[:, None, None] * v_GV[:, :, None] * k_GK[:, None, :]
    return replace(state, weights=(M_GVK,), window=(token.k, token.v))

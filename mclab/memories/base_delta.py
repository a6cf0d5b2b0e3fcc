"""Linear memories that erase what a key held before they write: what the delta rules and RWKV-7 share.

Depth 1, from zero, exact in chunks. Shapes as in memories/base.py.

See docs/equations.md#erasing-in-chunks.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.net import Net
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.chunks import Chunks
from mclab.memories.fast_weights import Fold, write_in_chunks


class DeltaRuleMemory(Memory):
    """`chunk`: the most tokens in a chunk, on which the result does not depend; None where the device decides."""

    chunk: int | None = None

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.heads = heads

    @abstractmethod
    def source(self, tokens: Tokens, chunks: Chunks) -> Source:
        """The tokens, cut into chunks and written."""

    def initial(self, tokens: Tokens) -> State:
        return State((tokens.k.new_zeros(tokens.k.shape[0], tokens.v.shape[-1], tokens.k.shape[-1]),))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        chunk = self.chunk or costs(tokens.k.device.type).delta_chunk
        return write_in_chunks(tokens, segments, init, chunk, self.source, Net(None, "dot"), Fold(1, 1))

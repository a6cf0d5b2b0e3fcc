"""The base of linear memories that first erase what was stored under a key: the delta rules and RWKV-7.

They have depth 1 and start at zero; their chunk form is exact. Shapes as in memories/base.py.

See docs/equations.md#erasing-in-chunks.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.kernels.delta.checked import KERNEL_CHUNK
from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.net import Net
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.chunks import Chunks
from mclab.memories.fast_weights import Fold, write_in_chunks
from mclab.memories.kernel_choice import triton_precision


class DeltaRuleMemory(Memory):
    """A memory that erases before it writes. The result does not depend on `chunk`, the largest length of a chunk.

    If `chunk` is `None`, the device decides.
    """

    chunk: int | None = None

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.mixer, self.heads = mixer, heads

    @abstractmethod
    def source(self, tokens: Tokens, chunks: Chunks, precision: str | None) -> Source:
        """Cut the tokens into chunks, write them into the memory, and return what reads it.

        `precision` is the precision of training; it is `None` if no Triton kernel is used.
        """

    def initial(self, tokens: Tokens) -> State:
        return State((tokens.k.new_zeros(tokens.k.shape[0], tokens.v.shape[-1], tokens.k.shape[-1]),))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        precision = triton_precision(self.mixer, tokens)
        chunk = costs(tokens.k.device.type).delta_chunk if precision is None else KERNEL_CHUNK

        def source(cut: Tokens, chunks: Chunks) -> Source:
            return self.source(cut, chunks, precision)

        return write_in_chunks(tokens, segments, init, self.chunk or chunk, source, Net(None, "dot"), Fold(1, 1))

"""The delta rule: S_t = S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T, beta = sigmoid(.) of each head.

DeltaNet (Schlag et al. 2021, arXiv 2102.11174; in chunks Yang et al. 2024, arXiv 2406.06484, there beta has no bias).

See docs/equations.md#delta.
"""

import math

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.kernels.delta import recurrent
from mclab.kernels.delta.checked import written
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.rates import Rates
from mclab.memories.base import State, Tokens
from mclab.memories.base_delta import DeltaRuleMemory
from mclab.memories.chunks import Chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Constant, Normal, parameter


class DeltaMemory(DeltaRuleMemory):
    """The memory of the delta rule.

    Its rate beta is the share of what the key held that is replaced; it starts at 1/2.
    """

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        self.project = parameter(replicas, width, heads, init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(replicas, heads, init=Constant(0.0))

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        logits_RBTH = linear(x_RBTD, self.project) + self.bias[:, None, None]
        return Tokens(k_GTK, v_GTV, (torch.sigmoid(logits_RBTH).transpose(2, 3).flatten(0, 2),))

    def source(self, tokens: Tokens, chunks: Chunks, precision: str | None) -> Source:
        k, v, beta = (chunks.cut(x) for x in (tokens.k, tokens.v, tokens.rates[0]))
        return written("delta", precision, k, v, Rates(beta), chunks.keep)

    def step(self, state: State, token: Tokens) -> State:
        k, v, beta = token.k, token.v, token.rates[0].unsqueeze(-1)
        return State((recurrent.step(state.weights[0], torch.ones_like(beta), beta * k, k, beta * k, v),))

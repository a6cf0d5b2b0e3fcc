"""The gated delta rule: S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T (arXiv 2412.06464).

beta = sigmoid(.), log alpha = -A softplus(.), A = exp(A_log) of each head. The published code starts A uniformly
between 0 and 16 and the softplus log-uniformly between 0.001 and 0.1. With most of these values a head forgets a
sequence of 64 tokens. Here the range from 1 to 16 is divided into H parts that are equal on a logarithmic scale, and
the A of each head starts in the middle of its part (at 4 with one head). Every softplus starts at 0.001. So a head
keeps between e^-0.06 and e^-1 of what it held 64 tokens ago; with one head it keeps e^-0.26.

See docs/equations.md#gated_delta.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.kernels.delta import recurrent
from mclab.kernels.delta.checked import written
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.rates import Rates
from mclab.memories.base import State, Tokens
from mclab.memories.base_delta import DeltaRuleMemory
from mclab.memories.chunks import Chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Normal, Values, parameter

#: The range over which the A of the heads start, and the value at which every softplus starts.
DECAYS, STEP = (1.0, 16.0), 0.001


class GatedDeltaMemory(DeltaRuleMemory):
    """The memory of the gated delta rule.

    It has rates for what is replaced (beta) and kept (alpha), and an A for each head.
    """

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        self.project = parameter(replicas, width, heads * 2, init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(
            replicas, heads, 2, init=Values(((0.0, math.log(math.expm1(STEP))),) * heads), decays=False
        )
        self.A_log = parameter(replicas, heads, 1, init=Values(_spread(heads)), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        logits = linear(x_RBTD, self.project).unflatten(-1, (self.heads, 2)) + self.bias[:, None, None]
        beta_RBTH, step_RBTH = logits.unbind(-1)
        log_alpha = -F.softplus(step_RBTH) * self.A_log.exp()[:, None, None, :, 0]
        rates = (torch.sigmoid(beta_RBTH), log_alpha)
        return Tokens(k_GTK, v_GTV, tuple(rate.transpose(2, 3).flatten(0, 2) for rate in rates))

    def source(self, tokens: Tokens, chunks: Chunks, precision: str | None) -> Source:
        k, v, beta, log_alpha = (chunks.cut(x) for x in (tokens.k, tokens.v, *tokens.rates))
        return written("gated_delta", precision, k, v, Rates(beta, log_alpha), chunks.keep)

    def step(self, state: State, token: Tokens) -> State:
        beta, log_alpha = (rate.unsqueeze(-1) for rate in token.rates)
        k, alpha = token.k, log_alpha.exp()
        return State((recurrent.step(state.weights[0], alpha, alpha * beta * k, k, beta * k, token.v),))


def _spread(heads: int) -> tuple[tuple[float, ...], ...]:
    low, high = (math.log(decay) for decay in DECAYS)
    return tuple((low + (high - low) * (head + 0.5) / heads,) for head in range(heads))

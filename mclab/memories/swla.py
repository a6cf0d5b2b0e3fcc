"""Sliding-window linear attention: M_t = alpha_t M_{t-1} + beta_t v_{t-1} k_{t-1}^T + lambda_t v_t k_t^T.

This is the rule of MC (arXiv 2602.24281), with a window of two tokens; alpha, beta, lambda in (0, 1) come from the
layer's input. Written as decayed attention, token j has the weight Lambda_tj lambda_j + Lambda_{t,j+1} beta_{j+1} at t,
where Lambda_tj is the product of alpha over j < m <= t. The window does not reach over a restart.

See docs/equations.md#swla.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.kernels.fastweight.rates import Coefficients, Rates, coefficients
from mclab.memories.base import State, Tokens
from mclab.memories.base_decay import DecayedMemory, stepped
from mclab.memories.chunks import Chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Normal, Values, parameter

#: The initial biases of the logits of alpha, beta and lambda: the memory is kept, the token before is partly written
#: again, and this token is written.
STARTS = (5.0, 0.0, 0.0)


class SwlaMemory(DecayedMemory):
    """The memory of SWLA. A token is written when it comes, and once more when the next token comes."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        self.project = parameter(replicas, width, heads * 3, init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(replicas, heads, 3, init=Values((STARTS,) * heads), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        logits = linear(x_RBTD, self.project).unflatten(-1, (self.heads, 3)) + self.bias[:, None, None]
        return Tokens(k_GTK, v_GTV, logits.transpose(2, 3).flatten(0, 2).unbind(-1))

    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        alpha, beta, write = tokens.rates
        log_alpha = chunks.cut(F.logsigmoid(alpha))
        now = coefficients(Rates(chunks.cut(torch.sigmoid(write)), log_alpha))
        again = coefficients(Rates(chunks.cut(torch.sigmoid(beta)), log_alpha))
        # Write 0 is the token before the chunk, write j + 1 is token j. beta_j writes the token before j.
        return now._replace(writes=F.pad(now.writes, (1, 0)) + F.pad(again.writes, (0, 1)))

    def writes(self, tokens: Tokens, chunks: Chunks) -> tuple[Tensor, Tensor]:
        return _with_last(tokens.k, chunks), _with_last(tokens.v, chunks)

    def step(self, state: State, token: Tokens) -> State:
        alpha, beta, write = (torch.sigmoid(rate) for rate in token.rates)
        last_k, last_v = state.window
        return stepped(state, alpha, [(beta, last_v, last_k), (write, token.v, token.k)], token)


def _with_last(x_GTK: Tensor, chunks: Chunks) -> Tensor:
    """Return each chunk, preceded by the token before it, [M, X, C + 1, K].

    Before the memory's first token there are zeros.
    """
    before = F.pad(x_GTK, (0, 0, 1, -1))
    if chunks.restarts:
        before = before.unflatten(1, (chunks.segments.count, -1))
        before = F.pad(before[:, :, 1:], (0, 0, 1, 0)).flatten(1, 2)
    return torch.cat((chunks.cut(before)[:, :, :1], chunks.cut(x_GTK)), 2)

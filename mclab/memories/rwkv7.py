"""RWKV-7's memory: S_t = S_{t-1} (diag(w_t) - kappa_t (a_t * kappa_t)^T) + v_t k'_t^T, read S q (arXiv 2503.14456).

w = exp(-e^(-1/2) sigmoid(d)) and a = sigmoid(.) for every channel; kappa = (k * xi) / |k * xi| in each head;
k' = k (1 + (a - 1) * rho). d is a bias plus a map of the layer's input by two matrices with tanh between them; the
logit of a is a bias plus a map by two matrices.

These parts of the full block are left out: the shift of tokens before the projections (the short convolution takes its
place), the bonus of the present token, the value residual between layers, the output's gate (`out_gate: true` adds one)
and group norm (the mixer's norm takes its place). RWKV-7 starts the decays of its channels between e^-0.001 and e^-0.11
a token. The fast channels would forget a sequence of 64 tokens. Here, of what a channel held 64 tokens ago, the slowest
keeps e^-0.06 and the fastest e^-0.7.

See docs/equations.md#rwkv7.
"""

import math

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.config.model.rules import low_rank
from mclab.kernels import rwkv7
from mclab.kernels.delta import chunkwise, recurrent
from mclab.kernels.fastweight.chunkwise import Source
from mclab.memories.base import State, Tokens
from mclab.memories.base_delta import DeltaRuleMemory
from mclab.memories.chunks import Chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Constant, Normal, ReplicaParameter, Values, parameter

#: The range over which d starts for the channels of a head.
DECAYS = (-6.5, -4.0)


class Rwkv7Memory(DeltaRuleMemory):
    """The memory of RWKV-7.

    Every channel has a decay and a step size; `Tokens.rates` are log w, kappa and a * kappa.
    """

    chunk = chunkwise.CHANNELS_CHUNK

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        K, rank = width // heads, low_rank(width)

        def matrix(into: int, out: int) -> ReplicaParameter:
            return parameter(replicas, into, out, init=Normal(1 / math.sqrt(into)))

        self.decay_down, self.decay_up = matrix(width, rank), matrix(rank, width)
        self.step_down, self.step_up = matrix(width, rank), matrix(rank, width)
        self.decay_bias = parameter(replicas, heads, K, init=Values((_spread(K),) * heads), decays=False)
        self.step_bias = parameter(replicas, heads, K, init=Constant(0.0), decays=False)
        self.xi = parameter(replicas, heads, K, init=Constant(1.0), decays=False)
        self.rho = parameter(replicas, heads, K, init=Constant(1.0), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        d = linear(torch.tanh(linear(x_RBTD, self.decay_down)), self.decay_up)
        a = linear(linear(x_RBTD, self.step_down), self.step_up)
        d_GTK, a_GTK = self._heads(d, self.decay_bias), self._heads(a, self.step_bias)
        xi, rho = self._each(self.xi, k_GTK), self._each(self.rho, k_GTK)
        *rates, written_GTK = rwkv7.rates(d_GTK, a_GTK, k_GTK, xi, rho)
        return Tokens(written_GTK, v_GTV, tuple(rates))

    def source(self, tokens: Tokens, chunks: Chunks, precision: str | None) -> Source:
        log_w, kappa, erased = (chunks.cut(rate) for rate in tokens.rates)
        return chunkwise.Channels(log_w, kappa, erased, chunks.cut(tokens.k), chunks.cut(tokens.v), chunks.keep)

    def step(self, state: State, token: Tokens) -> State:
        log_w, kappa, erased = token.rates
        return State((recurrent.step(state.weights[0], log_w.exp(), kappa, erased, token.k, token.v),))

    def _heads(self, x_RBTD: Tensor, bias_RHK: Tensor) -> Tensor:
        """Return [G, T, K]: the sum of x and the bias, split into heads."""
        x: Tensor = x_RBTD.unflatten(-1, (self.heads, -1)) + bias_RHK[:, None, None]
        return x.transpose(2, 3).flatten(0, 2)

    def _each(self, own_RHK: Tensor, like_GTK: Tensor) -> Tensor:
        """Return [G, 1, K]: the vector of each head, repeated for every sequence."""
        R, H, K = own_RHK.shape
        return own_RHK.unsqueeze(1).expand(R, like_GTK.shape[0] // (R * H), H, K).reshape(-1, 1, K)


def _spread(rwkv7: int) -> tuple[float, ...]:
    low, high = DECAYS
    return tuple(low + (high - low) * (channel + 0.5) / rwkv7 for channel in range(rwkv7))

"""A memory as somebody adds one: M_t = a M_{t-1} + v_t k_t^T with a = sigmoid(.) of each head, learned."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.kernels.fastweight.rates import Coefficients, Rates, coefficients
from mclab.memories.base import State, Tokens
from mclab.memories.base_decay import DecayedMemory, stepped
from mclab.memories.chunks import Chunks
from mclab.replicas.parameters import Constant, parameter


class LeakyMemory(DecayedMemory):
    """Its one rate is log a, the same for all tokens of a head."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        self.leak = parameter(replicas, heads, 1, init=Constant(2.0), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        _, B, T, _ = x_RBTD.shape
        log_a = F.logsigmoid(self.leak).unsqueeze(1).expand(-1, B, -1, T)
        return Tokens(k_GTK, v_GTV, (log_a.flatten(0, 2),))

    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        (log_a,) = tokens.rates
        return coefficients(Rates(chunks.cut(torch.ones_like(log_a)), chunks.cut(log_a)))

    def step(self, state: State, token: Tokens) -> State:
        (log_a,) = token.rates
        return stepped(state, log_a.exp(), [(torch.ones_like(log_a), token.v, token.k)], token)

"""Memora: Z_t = alpha_t Z_{t-1} - eta_t dL/dW, L = |W k - v|^2, W = K (P+ - P-) (Miras, arXiv 2504.13173).

[P+, P-] is the softmax of [Z, -Z] over the 2 K inputs of each output row. Retention by KL divergence keeps each row a
distribution, and the second half, P-, makes negative weights possible. This equals the paper's
softmax(alpha log W - eta grad), but has no logarithm of negative numbers. Shapes as in memories/base.py.

See docs/equations.md#memora.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.memora import recurrent
from mclab.kernels.memora.chunkwise import Retention
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.chunks import Chunks
from mclab.memories.fast_weights import Fold, write_in_chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Normal, Values, parameter

#: The initial biases of the logits of eta and alpha.
STARTS = (0.0, 5.0)


class MemoraMemory(Memory):
    """A memory of one matrix that starts at zero.

    In a state, `weights` is W, which reads and Soup need, and `logits` is Z, which the next write needs. The steps of a
    chunk sum to at most `max_lr`: eta = sigmoid(.) max_lr / C.
    """

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.heads, self.chunk, self.max_lr = heads, mixer.tokens_a_chunk, mixer.max_lr
        self.project = parameter(replicas, width, heads * 2, init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(replicas, heads, 2, init=Values((STARTS,) * heads), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        logits = linear(x_RBTD, self.project).unflatten(-1, (self.heads, 2)) + self.bias[:, None, None]
        return Tokens(k_GTK, v_GTV, logits.transpose(2, 3).flatten(0, 2).unbind(-1))

    def rates(self, tokens: Tokens) -> Rates:
        """Return step size and decay of each token."""
        eta, alpha = tokens.rates
        return Rates(torch.sigmoid(eta) * (self.max_lr / self.chunk), F.logsigmoid(alpha))

    def initial(self, tokens: Tokens) -> State:
        zero = (tokens.k.new_zeros(tokens.k.shape[0], tokens.v.shape[-1], tokens.k.shape[-1]),)
        return State(zero, anchor=zero, logits=zero)

    def begin(self, state: State) -> State:
        return replace(state, place=0)

    def step(self, state: State, token: Tokens) -> State:
        eta, log_alpha, _ = self.rates(token)
        assert log_alpha is not None
        (logits,) = state.logits
        (anchor,) = state.anchor if state.place % self.chunk else (recurrent.formed(logits),)
        logits, weights = recurrent.step(logits, anchor, (token.k, token.v), (eta, log_alpha.exp()))
        return replace(state, weights=(weights,), logits=(logits,), anchor=(anchor,), place=state.place + 1)

    def carried(self, state: State) -> State:
        """Return `state` without its weights, which `resumed` computes from the logits."""
        return replace(state, weights=(), anchor=state.anchor * (self.chunk > 1))

    def resumed(self, carried: State, initial: State) -> State:
        weights = (recurrent.formed(carried.logits[0]),)
        return replace(carried, weights=weights, anchor=carried.anchor or weights)

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return recurrent.read(state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        return write_in_chunks(tokens, segments, init, self.chunk, self._source, Net(None, "l2"), Fold(1, 1))

    def _source(self, tokens: Tokens, chunks: Chunks) -> Retention:
        eta, log_alpha, _ = self.rates(tokens)
        assert log_alpha is not None
        made = coefficients(Rates(chunks.cut(eta), chunks.cut(log_alpha)))
        return Retention(chunks.cut(tokens.k), chunks.cut(tokens.v), made, chunks.ends, chunks.keep)

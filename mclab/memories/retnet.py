"""RetNet: M_t = g_h M_{t-1} + v_t k_t^T with g_h = 1 - 2^(-5-h) of head h, rotary on q and k (arXiv 2307.08621).

See docs/equations.md#retnet.
"""

import torch
from torch import Tensor

from mclab.kernels.fastweight.rates import Coefficients, Rates, coefficients
from mclab.memories.base import State, Tokens
from mclab.memories.chunks import Chunks
from mclab.memories.decayed import DecayedMemory, stepped


class RetnetMemory(DecayedMemory):
    """Forgets at a fixed rate a head."""

    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        ones_GT = torch.ones_like(tokens.k[..., 0])
        log_alpha = chunks.cut(ones_GT * self._decay(tokens.k).log()[:, None])
        return coefficients(Rates(chunks.cut(ones_GT), log_alpha))

    def step(self, state: State, token: Tokens) -> State:
        alpha_G = self._decay(token.k)
        return stepped(state, alpha_G, [(torch.ones_like(alpha_G), token.v, token.k)], token)

    def _decay(self, like: Tensor) -> Tensor:
        """[G]: g of each sequence and head; the head turns fastest."""
        head = torch.arange(self.heads, dtype=like.dtype, device=like.device)
        return (1 - 2 ** (-5 - head)).repeat(like.shape[0] // self.heads)

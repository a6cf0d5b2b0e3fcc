"""RetNet: M_t = g_h M_{t-1} + v_t k_t^T with g_h = 1 - 2^(-5-h) of head h, rotary on q and k (arXiv 2307.08621).

See docs/equations.md#retnet.
"""

import torch
from torch import Tensor

from mclab.constants import once, ones
from mclab.kernels.fastweight.rates import Coefficients, Rates, coefficients
from mclab.memories.base import State, Tokens
from mclab.memories.base_decay import DecayedMemory, stepped
from mclab.memories.chunks import Chunks


class RetnetMemory(DecayedMemory):
    """The memory of RetNet. It forgets at a fixed rate for each head."""

    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        G, T, _ = tokens.k.shape
        kind = tokens.k.dtype, tokens.k.device
        return coefficients(Rates(chunks.cut(ones((G, T), *kind)), chunks.cut(_logs(self.heads, G, T, *kind))))

    def step(self, state: State, token: Tokens) -> State:
        alpha_G = _decays(self.heads, token.k.shape[0], token.k.dtype, token.k.device)
        return stepped(state, alpha_G, [(torch.ones_like(alpha_G), token.v, token.k)], token)


@once
def _decays(heads: int, folded: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [G]: g = 1 - 2^(-5-h) of each sequence and head; the head varies fastest."""
    head = torch.arange(heads, dtype=dtype, device=device)
    return (1 - 2 ** (-5 - head)).repeat(folded // heads)


@once
def _logs(heads: int, folded: int, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [G, T]: the logarithm of each token's g."""
    return _decays(heads, folded, dtype, device).log()[:, None].repeat(1, length)

"""The chunk form's coefficients: how each token's write and the carried state enter each later token's weights.

Within a chunk of C tokens, positions t and j from 0 (EQUATIONS 2, chunk form):
W_t = A_t W_0 + B_t S_0 + sum_{j <= t} c_tj eta_j u_j a_j^T, S_C = b_C S_0 + sum_j m_j u_j a_j^T.
Products of decays are differences of running sums of logarithms, masked before the exponential.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Rates(NamedTuple):
    """One number a token: write strength eta, log of the decay alpha, log of the momentum beta; None is 1 and 0."""

    eta: Tensor
    log_alpha: Tensor | None = None
    log_beta: Tensor | None = None


class Coefficients(NamedTuple):
    """For chunks [..., C]: `decay` A_t, `carry` B_t [..., C], `writes` c_tj eta_j [..., C, C]; and at the chunk's end
    `momentum_decay` b_C [..., 1] and `momentum_writes` m_j [..., C]. None where there is no decay or no momentum."""

    writes: Tensor
    decay: Tensor | None
    carry: Tensor | None
    momentum_decay: Tensor | None
    momentum_writes: Tensor | None


def coefficients(rates: Rates) -> Coefficients:
    """From rates [..., C] of a chunk's tokens. A padded token has eta 0 and logs 0, and changes nothing."""
    C, device = rates.eta.shape[-1], rates.eta.device
    causal = torch.ones(C, C, dtype=torch.bool, device=device).tril()
    alpha = None if rates.log_alpha is None else _products(rates.log_alpha, causal)
    decay = None if rates.log_alpha is None else rates.log_alpha.cumsum(-1).exp()
    if rates.log_beta is None:
        kept = causal.to(rates.eta.dtype) if alpha is None else alpha
        return Coefficients(kept * rates.eta.unsqueeze(-2), decay, None, None, None)
    beta = _products(rates.log_beta, causal)
    momentum = rates.log_beta.cumsum(-1).exp()
    summed = causal.to(beta.dtype) if alpha is None else alpha
    writes = (summed @ beta) * rates.eta.unsqueeze(-2)
    carry = (summed @ momentum.unsqueeze(-1)).squeeze(-1)
    return Coefficients(writes, decay, carry, momentum[..., -1:], beta[..., -1, :] * rates.eta)


def _products(logs: Tensor, causal: Tensor) -> Tensor:
    """[..., C, C]: the product over j < m <= t, lower triangular."""
    total = logs.cumsum(-1)
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~causal, -torch.inf).exp()

"""The chunk form's coefficients: how each token's write and the carried state enter each later token's weights.

Within a chunk of C tokens, positions t and j from 0 (docs/equations.md#chunk-form):
W_t = A_t W_0 + B_t S_0 + sum_{j <= t} c_tj eta_j u_j a_j^T, S_C = b_C S_0 + sum_j m_j u_j a_j^T.
Products of decays are differences of running sums of logarithms.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Rates(NamedTuple):
    """One number per token: write strength eta, log of the decay alpha, log of the momentum beta.

    `log_alpha=None` means that alpha is 1, `log_beta=None` that beta is 0.
    """

    eta: Tensor
    log_alpha: Tensor | None = None
    log_beta: Tensor | None = None


class Coefficients(NamedTuple):
    """The coefficients of chunks of C tokens; a field is None if there is no decay or no momentum.

    `decay` A_t and `carry` B_t are [..., C], `writes` c_tj eta_j [..., C, C]. For the end of the chunk,
    `momentum_decay` b_C is [..., 1] and `momentum_writes` m_j [..., C].
    """

    writes: Tensor
    decay: Tensor | None
    carry: Tensor | None
    momentum_decay: Tensor | None
    momentum_writes: Tensor | None


def coefficients(rates: Rates) -> Coefficients:
    """Return the `Coefficients` of `rates` [..., C]. A padded token has eta 0 and logs 0, and changes nothing."""
    eta, log_alpha, log_beta = rates
    decay = None if log_alpha is None else log_alpha.cumsum(-1).exp()
    if log_beta is None:
        if log_alpha is None:
            return Coefficients(eta.unsqueeze(-2).expand(*eta.shape, -1).tril(), None, None, None, None)
        products = _Products.apply(log_alpha)  # type: ignore[no-untyped-call]
        return Coefficients(products * eta.unsqueeze(-2), decay, None, None, None)
    log_alpha = torch.zeros_like(log_beta) if log_alpha is None else log_alpha
    writes, carry, momentum_decay, momentum_writes = _Momentum.apply(eta, log_alpha, log_beta)  # type: ignore[no-untyped-call]
    return Coefficients(writes, decay, carry, momentum_decay, momentum_writes)


class _Products(torch.autograd.Function):
    """L_tj, the product of alpha over j < m <= t, from log alpha: [..., C] to [..., C, C]."""

    @staticmethod
    def forward(ctx: Any, logs: Tensor) -> Tensor:
        products = _products(logs)
        ctx.save_for_backward(products)
        return products

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return _products_backward(grads[0], *ctx.saved_tensors)


class _Momentum(torch.autograd.Function):
    """With La and Lb the products of alpha and of beta, and b the running product of beta: c = La Lb, writes = c * eta,
    B = La b, b_C, m_j = Lb_Cj eta_j. As b_i = beta_0 Lb_i0, B is beta_0 times the first column of c.

    Backward: dLa = dc Lb^T, and dLb = La^T dc plus dm eta in its last row.
    """

    @staticmethod
    def forward(ctx: Any, eta: Tensor, log_alpha: Tensor, log_beta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        alpha, beta = _products(log_alpha), _products(log_beta)
        first, last, both = log_beta[..., :1].exp(), log_beta.sum(-1, keepdim=True).exp(), alpha @ beta
        carry = both[..., 0] * first
        ctx.save_for_backward(eta, alpha, beta, first, last, both, carry)
        return both * eta.unsqueeze(-2), carry, last, beta[..., -1, :] * eta

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        grad_writes, grad_carry, grad_last, grad_end = grads
        eta, alpha, beta, first, last, both, carry = ctx.saved_tensors
        grad_eta = (grad_writes * both).sum(-2).addcmul_(grad_end, beta[..., -1, :])
        grad_both = grad_writes * eta.unsqueeze(-2)
        grad_both[..., 0].addcmul_(grad_carry, first)
        grad_beta = alpha.mT @ grad_both
        grad_beta[..., -1, :].addcmul_(grad_end, eta)
        grad_log_beta = _products_backward(grad_beta, beta).addcmul_(grad_last, last)
        grad_log_beta[..., 0] += (grad_carry * carry).sum(-1)
        return grad_eta, _products_backward(grad_both @ beta.mT, alpha), grad_log_beta


def _products(logs: Tensor) -> Tensor:
    """Return the products over j < m <= t [..., C, C], lower triangular.

    Above the diagonal, which is discarded, the exponential may overflow.
    """
    total = logs.cumsum(-1)
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).exp_().tril_()


def _products_backward(grad: Tensor, products: Tensor) -> Tensor:
    """Return the gradient of the logarithms from that of the products.

    L_tj = exp(s_t - s_j), s the running sum of the logarithms: ds_t = sum_j G_tj - sum_j G_jt, G = dL * L.
    """
    own = grad * products
    return _backward_cumsum(own.sum(-1) - own.sum(-2))


def _backward_cumsum(grad: Tensor) -> Tensor:
    return grad.flip(-1).cumsum(-1).flip(-1)

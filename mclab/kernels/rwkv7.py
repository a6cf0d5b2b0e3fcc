"""This module computes RWKV-7's rates and keys of every token from its logits and keys, with the gradient by hand.

log w = -e^(-1/2) sigmoid(d), kappa = k xi / |k xi|, a = sigmoid(j), and the key that is written is k (1 + (a - 1) rho)
(arXiv 2503.14456). Shapes: G folded, T time, K key width.

See docs/equations.md#rwkv7.
"""

import math
from typing import Any

import torch
from torch import Tensor

#: The lowest value of log w.
FASTEST = -math.exp(-0.5)
#: Added to |k xi|^2, so that a vector of zeros stays zero. RWKV-7 divides by the norm, but by no less than 1e-12.
FLOOR = 1e-24


def rates_reference(d: Tensor, j: Tensor, k: Tensor, xi: Tensor, rho: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log w, kappa, a kappa, and the key that is written; d, j and k are [G, T, K], xi and rho [G, 1, K]."""
    x, a = k * xi, torch.sigmoid(j)
    kappa = x / (x.square().sum(-1, keepdim=True) + FLOOR).sqrt()
    return FASTEST * torch.sigmoid(d), kappa, a * kappa, k * (1 + (a - 1) * rho)


def rates(d: Tensor, j: Tensor, k: Tensor, xi: Tensor, rho: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the results of `rates_reference`, with the gradient by hand. First derivatives only."""
    made: tuple[Tensor, Tensor, Tensor, Tensor] = _Rates.apply(d, j, k, xi, rho)  # type: ignore[no-untyped-call]
    return made


class _Rates(torch.autograd.Function):
    """Backward, with x = k xi and s = 1 / |x|: dx = s (dkappa - kappa (dkappa . kappa))."""

    @staticmethod
    def forward(
        ctx: Any, d: Tensor, j: Tensor, k: Tensor, xi: Tensor, rho: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        log_w, a, kappa = torch.sigmoid(d).mul_(FASTEST), torch.sigmoid(j), k * xi
        inverse = torch.linalg.vecdot(kappa, kappa).add_(FLOOR).rsqrt_().unsqueeze(-1)
        kappa *= inverse
        ctx.save_for_backward(log_w, a, kappa, inverse, k, xi, rho)
        return log_w, kappa, a * kappa, torch.addcmul(1 - rho, a, rho).mul_(k)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        grad_log_w, grad_kappa, grad_both, grad_written = grads
        log_w, a, kappa, inverse, k, xi, rho = ctx.saved_tensors
        grad_d = grad_log_w * log_w
        grad_d.addcmul_(grad_d, log_w, value=-1 / FASTEST)
        grad_x = torch.addcmul(grad_kappa, grad_both, a)
        along = torch.linalg.vecdot(grad_x, kappa).unsqueeze(-1)
        grad_x.addcmul_(kappa, along, value=-1).mul_(inverse)
        mixed = grad_written * k
        grad_j = (mixed * rho).addcmul_(grad_both, kappa).mul_(a)
        grad_j.addcmul_(grad_j, a, value=-1)
        grad_k = torch.addcmul(1 - rho, a, rho).mul_(grad_written).addcmul_(grad_x, xi)
        grad_xi = (grad_x * k).sum(1, keepdim=True)
        grad_rho = mixed.addcmul_(mixed, a, value=-1).sum(1, keepdim=True).neg_()
        return grad_d, grad_j, grad_k, grad_xi, grad_rho

"""This module divides vectors by their root mean square, with the gradient by hand.

Under autograd, the composed form keeps every intermediate. From the normalised output y alone the gradient is (g - y
mean(g y)) / rms, with about half the memory traffic (Zhang & Sennrich 2019).

See docs/equations.md#notation.
"""

from typing import Any

import torch
from torch import Tensor

from mclab.constants import number

#: Added to the mean square, so that a vector of zeros stays zero.
EPS = 1e-6


def rms_normalise_reference(x: Tensor) -> Tensor:
    """Return x / sqrt(mean(x^2) + EPS) over the last axis."""
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt()


class _Normalise(torch.autograd.Function):
    """y = x s with s = 1 / sqrt(|x|^2 / n + EPS'). Backward: dx = s (g - y (g . y) / n), where n is about |y|^2."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, eps: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.addcmul(eps, norm, norm, value=1 / size).rsqrt_()
        y = x * scale
        ctx.size = size
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grads
        y, scale = ctx.saved_tensors
        along = torch.linalg.vecdot(grad, y).unsqueeze(-1)
        return torch.addcmul(grad, y, along, value=-1 / ctx.size).mul_(scale), None, None


def rms_normalise(x: Tensor) -> Tensor:
    """Return x / rms(x) over the last axis, in the same shape. First derivatives only."""
    return _normalised(x, x.shape[-1], EPS)


def unit(x: Tensor) -> Tensor:
    """Return x / |x| over the last axis, up to EPS: the L2 normalisation of queries and keys.

    First derivatives only.
    """
    return _normalised(x, 1, EPS * x.shape[-1])


def _normalised(x: Tensor, size: int, eps: float) -> Tensor:
    result: Tensor = _Normalise.apply(x, size, number(eps, x.dtype, x.device))  # type: ignore[no-untyped-call]
    return result

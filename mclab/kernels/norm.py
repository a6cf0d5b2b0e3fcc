"""Division of vectors by their root mean square, with the gradient written out.

Autograd keeps every intermediate of the composed form; from the normalised output y alone the gradient is
(g - y mean(g y)) / rms, about half the memory traffic (Zhang & Sennrich 2019).

See docs/equations.md#notation.
"""

import math
from typing import Any

import torch
from torch import Tensor

#: Added to the mean square, so that a vector of zeros stays one.
EPS = 1e-6


def rms_normalise_reference(x: Tensor) -> Tensor:
    """x / sqrt(mean(x^2) + EPS) over the last axis."""
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt()


class _RmsNormalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        scale = torch.linalg.vecdot(x, x).div_(x.shape[-1]).add_(EPS).rsqrt_().unsqueeze(-1)
        y = x * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (grad,) = grads
        y, scale = ctx.saved_tensors
        along = torch.linalg.vecdot(grad, y).div_(y.shape[-1]).unsqueeze(-1)
        return torch.addcmul(grad, y, along, value=-1).mul_(scale)


def rms_normalise(x: Tensor) -> Tensor:
    """x / rms(x) over the last axis; same shape. First derivatives only."""
    result: Tensor = _RmsNormalise.apply(x)  # type: ignore[no-untyped-call]
    return result


def unit(x: Tensor) -> Tensor:
    """x / |x| over the last axis, up to EPS: the L2-norm of queries and keys."""
    return rms_normalise(x) / math.sqrt(x.shape[-1])

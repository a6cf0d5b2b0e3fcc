"""Unit lower triangular systems (I + L) z = r, many small ones at once, by the inverse.

The inverse is put together from the diagonal outward: of blocks P, Q on the diagonal and L between them it is
[[P^-1, 0], [-Q^-1 L P^-1, Q^-1]]. That is log2 C turns of batched products, C^3 / 3 multiply-adds, and as accurate as
substitution; the product (I - L)(I + L^2)(I + L^4)... is not (its factors grow like binomials where keys are equal).
Shapes: C rows, E right-hand sides; any leading axes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.tables import identity


def solve(lower: Tensor, right: Tensor) -> Tensor:
    """z [..., C, E] with (I + L) z = r; `lower` is L [..., C, C]: what is on and above its diagonal is never read."""
    solved: Tensor = _Solve.apply(lower, right)  # type: ignore[no-untyped-call]
    return solved


def inverse(lower: Tensor) -> Tensor:
    """(I + L)^-1 [..., C, C], with its gradient. `lower` as in `solve`."""
    return solve(lower, identity(lower.shape[-1], lower.dtype, lower.device).expand_as(lower))


class _Solve(torch.autograd.Function):
    """With U the inverse: dr = U^T dz, dL = -dr z^T below the diagonal."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor, right: Tensor) -> Tensor:
        inverse = inverse_of(lower)
        solved = inverse @ right
        ctx.save_for_backward(inverse, solved)
        return solved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        inverse, solved = ctx.saved_tensors
        grad_right = inverse.mT @ grads[0]
        return (grad_right @ solved.mT).neg_().tril_(-1), grad_right


def inverse_of(lower: Tensor) -> Tensor:
    """The same without a gradient."""
    C = lower.shape[-1]
    size = 1 << (C - 1).bit_length()
    if size > C:
        lower = F.pad(lower, (0, size - C, 0, size - C))
    made = torch.zeros_like(lower, memory_format=torch.contiguous_format)
    made.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    half = 1
    while half < size:
        own, given = _diagonal_blocks(made, 2 * half), _diagonal_blocks(lower, 2 * half)
        between = given[..., half:, :half]
        if half > 1:
            between = own[..., half:, half:] @ between @ own[..., :half, :half]
        own[..., half:, :half] = -between
        half *= 2
    return made[..., :C, :C]


def _diagonal_blocks(x: Tensor, size: int) -> Tensor:
    """A view of the blocks on the diagonal: [..., C, C] to [..., C / size, size, size]."""
    blocks = x.unflatten(-1, (-1, size)).unflatten(-3, (-1, size))
    return blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)

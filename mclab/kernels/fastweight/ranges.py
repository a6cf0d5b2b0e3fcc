"""This module gathers ranges of a sequence, one per memory, into one tensor, and adds the results back to the ranges.

Neither needs a pass over the whole sequence for each range, forward or backward. Shapes: G folded, T time, L the sum of
the ranges' lengths, D width. Weights are [G, T, N], and range n has column n.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

#: For each range, its first token and the token after its last one.
Bounds = Sequence[tuple[int, int]]


def gathered(x: Tensor, bounds: Bounds) -> Tensor:
    """Return the slices of `x` [G, T, D] in all ranges, one after the other, [G, L, D]."""
    made: Tensor = _Gathered.apply(x, bounds)  # type: ignore[no-untyped-call]
    return made


def added(y: Tensor, parts: Tensor, weights: Tensor | None, bounds: Bounds) -> Tensor:
    """Return y [G, T, D] plus, in range n, the part of `parts` [G, L, D] for range n times column n of `weights`.

    `weights=None` means that all weights are 1.
    """
    made: Tensor = _Added.apply(y, parts, weights, bounds)  # type: ignore[no-untyped-call]
    return made


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bounds: Bounds) -> Tensor:
        ctx.bounds, ctx.shape = bounds, x.shape
        return torch.cat([x[:, first:end] for first, end in bounds], 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        grad_x = grads[0].new_zeros(ctx.shape)
        for (first, end), part in zip(ctx.bounds, _split(grads[0], ctx.bounds), strict=True):
            grad_x[:, first:end] += part
        return grad_x, None


class _Added(torch.autograd.Function):
    """The sum of `added`. Backward, within each range: dpart = w dy and dw = dy . part."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, parts: Tensor, weights: Tensor | None, bounds: Bounds) -> Tensor:
        total = y.clone()
        for n, ((first, end), part) in enumerate(zip(bounds, _split(parts, bounds), strict=True)):
            if weights is None:
                total[:, first:end] += part
            else:
                total[:, first:end].addcmul_(weights[:, first:end, n, None], part)
        ctx.bounds = bounds
        ctx.save_for_backward(None if weights is None else parts, weights)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (grad,), (parts, weights) = grads, ctx.saved_tensors
        grad_parts = torch.cat([grad[:, first:end] for first, end in ctx.bounds], 1)
        if weights is None:
            return grad, grad_parts, None, None
        grad_weights, dots = torch.zeros_like(weights), torch.linalg.vecdot(grad_parts, parts)
        pieces = zip(ctx.bounds, _split(dots, ctx.bounds), _split(grad_parts, ctx.bounds), strict=True)
        for n, ((first, end), dot, part) in enumerate(pieces):
            grad_weights[:, first:end, n] = dot
            part *= weights[:, first:end, n, None]
        return grad, grad_parts, grad_weights, None


def _split(x: Tensor, bounds: Bounds) -> Sequence[Tensor]:
    return x.split([end - first for first, end in bounds], 1)

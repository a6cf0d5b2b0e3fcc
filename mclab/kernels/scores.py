"""This module multiplies every token's vector with sums of keys: the running sum of its segment, and those of all
segments.

Shapes: G = R*B*H folded, T time (a multiple of S), K key width, S segment length, N segments.

See docs/equations.md#context-score.
"""

from typing import Any

import torch
from torch import Tensor


def segment_scores_reference(u_GTK: Tensor, k_GTK: Tensor, segment: int) -> tuple[Tensor, Tensor]:
    """Return the running products [G, T] and the whole products [G, T, N], token by token.

    running[t] is <u_t, sum of the keys of t's segment up to t>, whole[t, n] is <u_t, sum of all keys of segment n>.
    """
    T = k_GTK.shape[1]
    sums = [k_GTK[:, start : start + segment].sum(1) for start in range(0, T, segment)]
    running = []
    for t in range(T):
        total = k_GTK[:, t - t % segment : t + 1].sum(1)
        running.append((u_GTK[:, t] * total).sum(-1))
    whole = torch.stack([(u_GTK * total[:, None]).sum(-1) for total in sums], dim=-1)
    return torch.stack(running, dim=1), whole


class _Scores(torch.autograd.Function):
    """The products of `segment_scores`, times `factors`, where the column of t's segment has the running product."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, k: Tensor, segment: int, own: Tensor, column: Tensor, factors: Tensor) -> Tensor:
        sums_GNSK = k.unflatten(1, (-1, segment)).cumsum(2)
        running_GT = torch.linalg.vecdot(u, sums_GNSK.flatten(1, 2))
        whole_GTN = u @ sums_GNSK[:, :, -1].transpose(-1, -2)
        ctx.save_for_backward(u, sums_GNSK, own, column, factors)
        return torch.where(own, running_GT.unsqueeze(-1), whole_GTN) * factors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        u, sums_GNSK, own, column, factors = ctx.saved_tensors
        grad_GTN = grads[0] * factors
        running_GT1 = grad_GTN.gather(-1, column.expand(len(u), -1, -1))
        return *_gradients(u, sums_GNSK, running_GT1, grad_GTN.masked_fill_(own, 0.0)), None, None, None, None


def _gradients(u: Tensor, sums_GNSK: Tensor, running_GT1: Tensor, whole_GTN: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of u and k from those of the running and the whole products."""
    grad_u = (whole_GTN @ sums_GNSK[:, :, -1]).addcmul_(running_GT1, sums_GNSK.flatten(1, 2))
    # A key is part of the running sums from its token to the segment's end, so its gradient is the sum over these
    # tokens.
    grad_sums = (running_GT1 * u).view_as(sums_GNSK)
    upto = grad_sums.cumsum(2)
    total = upto[:, :, -1] + whole_GTN.transpose(-1, -2) @ u
    return grad_u, grad_sums.sub_(upto).add_(total.unsqueeze(2)).flatten(1, 2)


class _SegmentScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, k: Tensor, segment: int) -> tuple[Tensor, Tensor]:
        sums_GNSK = k.unflatten(1, (-1, segment)).cumsum(2)
        ctx.save_for_backward(u, sums_GNSK)
        return torch.linalg.vecdot(u, sums_GNSK.flatten(1, 2)), u @ sums_GNSK[:, :, -1].transpose(-1, -2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        running_GT, whole_GTN = grads
        u, sums_GNSK = ctx.saved_tensors
        return *_gradients(u, sums_GNSK, running_GT.unsqueeze(-1), whole_GTN), None


def segment_scores(u_GTK: Tensor, k_GTK: Tensor, segment: int) -> tuple[Tensor, Tensor]:
    """Return the results of `segment_scores_reference`, [G, T] and [G, T, N], without loops. First derivatives only."""
    running, whole = _SegmentScores.apply(u_GTK, k_GTK, segment)  # type: ignore[no-untyped-call]
    return running, whole


def scores(u_GTK: Tensor, k_GTK: Tensor, segment: int, own_TN: Tensor, column_T1: Tensor, factors_TN: Tensor) -> Tensor:
    """Return the products with the sums of all segments [G, T, N]; the column of t's segment has the running product.

    All are multiplied by `factors`. `own` is True in the column of t's segment, and `column` is the index of that
    column. First derivatives only.
    """
    made: Tensor = _Scores.apply(u_GTK, k_GTK, segment, own_TN, column_T1, factors_TN)  # type: ignore[no-untyped-call]
    return made

"""This module applies W_t to the vector of token t, in one layer of a written sequence.

Shapes as in chunkwise.py and reads.py.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight import reads


@dataclass(frozen=True)
class Slots:
    """The states carried into each chunk.

    `values` is [M, X, s, n, w]. `factors` f is [M, X, C, s]; None means one slot with factor 1. `widens` is True if the
    layer's input is the narrow side. In the first chunk, only the first `live` slots are not zero.
    """

    values: Tensor | None
    factors: Tensor | None
    widens: bool
    live: int


def online(x: Tensor, slots: Slots, writes: Tensor, inputs: Tensor, updates: Tensor) -> Tensor:
    """Return W_t x_t for every token t, [M, X, C, O], from `x` [M, X, C, I].

    `writes` c is [M, X, C, J], and zero for a write that a token does not see; `inputs` a is [M, X, J, I], `updates` u
    [M, X, J, O].
    """
    y: Tensor = _Online.apply(  # type: ignore[no-untyped-call]
        x, slots.values, slots.factors, writes, inputs, updates, slots.widens, slots.live
    )
    return y


class _Online(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        slots: Tensor | None,
        factors: Tensor | None,
        writes: Tensor,
        inputs: Tensor,
        updates: Tensor,
        widens: bool,
        live: int,
    ) -> Tensor:
        y = x.new_zeros(*x.shape[:3], updates.shape[-1])
        scores, through = torch.empty_like(writes), []
        for span in _spans(x, slots, live):
            own, f = _carried(slots, factors, span, live)
            x_s, y_s = x[span].flatten(0, 1), y[span].flatten(0, 1)
            if own is not None:
                through.append(reads.carried(x_s, own, f, widens, y_s))
            c, a, u, p = (z[span].flatten(0, 1) for z in (writes, inputs, updates, scores))
            reads.within(x_s, c, a, u, p, y_s)
        ctx.widens, ctx.live = widens, live
        ctx.save_for_backward(x, slots, factors, writes, inputs, updates, scores, *through)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, slots, factors, writes, inputs, updates, scores, *through = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x, *rest = (torch.zeros_like(z) for z in (x, writes, inputs, updates))
        grad_slots, grad_factors = (None if z is None else torch.zeros_like(z) for z in (slots, factors))
        for span in _spans(x, slots, ctx.live):
            own, f = _carried(slots, factors, span, ctx.live)
            grad_s, x_s, grad_x_s = (z[span].flatten(0, 1) for z in (grad, x, grad_x))
            if own is not None:
                grad_own, grad_f = _carried(grad_slots, grad_factors, span, ctx.live)
                assert grad_own is not None
                out = grad_x_s, grad_own, grad_f
                reads.carried_backward(grad_s, x_s, own, f, ctx.widens, through.pop(0), out)
            c, a, u, p = (z[span].flatten(0, 1) for z in (writes, inputs, updates, scores))
            grad_c, grad_a, grad_u = (z[span].flatten(0, 1) for z in rest)
            reads.within_backward(grad_s, x_s, c, a, u, p, (grad_x_s, grad_c, grad_a, grad_u))
        return grad_x, grad_slots, grad_factors, *rest, None, None


def _spans(x: Tensor, slots: Tensor | None, live: int) -> list[slice]:
    """Return the ranges of chunks that are computed at once.

    The first chunk is a range alone if some of its slots are zero. The ranges after it have the number of chunks that
    is best for the device.
    """
    M, X, C, _ = x.shape
    first = 1 if slots is not None and live < slots.shape[2] else 0
    step = max(1, costs(x.device.type).tokens // (X * C))
    return [slice(0, 1)] * first + [slice(m, m + step) for m in range(first, M, step)]


def _carried(
    slots: Tensor | None, factors: Tensor | None, span: slice, live: int
) -> tuple[Tensor | None, Tensor | None]:
    """Return the slots of the chunks in `span` that are not zero, [X, s * n, w], and their factors [X, C, s]."""
    if slots is None or (span.start == 0 and live == 0):
        return None, None
    count = live if span.start == 0 else slots.shape[2]
    f = None if factors is None else factors[span].flatten(0, 1)[..., :count]
    return slots[span].flatten(0, 1)[:, :count].flatten(1, 2), f

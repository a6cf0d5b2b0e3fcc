"""This module launches the kernels of a chunk's coefficients for torch: one launch forward and one backward.

A launch computes all chunks of all sequences. The result is that of `steps.steps(coefficients(rates), ends)` with decay
and momentum. Shapes as in chunkwise.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.kernels.fastweight.rates import Rates
from mclab.kernels.fastweight.steps import Steps
from mclab.kernels.fastweight.triton import rates as kernels
from mclab.kernels.launch import launch, power_of_two

#: Warps of a program, by the padded length of its chunk.
WARPS = {16: 1, 32: 4}


def steps(rates: Rates, ends: Sequence[int]) -> Steps:
    """Return the `Steps` of `rates` [M, X, C], none of which may be None.

    Products are exact in every training precision.
    """
    writes, factors, at_end, mix = _Steps.apply(*rates, tuple(ends))  # type: ignore[no-untyped-call]
    return Steps(writes, 2, factors, mix, at_end)


def constants(C: int, double: bool) -> dict[str, Any]:
    """Return the compile-time arguments of both kernels."""
    import triton.language as tl

    return {"CP": power_of_two(C, 16), "SUM": tl.float64 if double else tl.float32}


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, eta: Tensor, log_alpha: Tensor, log_beta: Tensor, ends: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        eta, log_alpha, log_beta = (x.contiguous() for x in (eta, log_alpha, log_beta))
        (M, X, C), last = eta.shape, integers(ends, eta.device)
        writes, factors, at_end, mix = (eta.new_empty(M, X, *own) for own in ((C, C), (C, 2), (C, 2), (2, 2)))
        ctx.known, ctx.sizes = constants(C, eta.dtype == torch.float64), (X, C)
        given = (eta, log_alpha, log_beta, last)
        launch(
            kernels.forward, (M * X,), eta, *given, writes, factors, at_end, mix, *ctx.sizes, **ctx.known,
            num_warps=WARPS[ctx.known["CP"]],
        )  # fmt: skip
        ctx.save_for_backward(*given)
        return writes, factors, at_end, mix

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        eta, *rest = ctx.saved_tensors
        made = [torch.empty_like(eta) for _ in range(3)]
        upstream = [x.contiguous() for x in grads]
        launch(
            kernels.backward, (eta[..., 0].numel(),), eta, eta, *rest, *upstream, *made, *ctx.sizes, **ctx.known,
            num_warps=WARPS[ctx.known["CP"]],
        )  # fmt: skip
        return *made, None

"""The triangular system of a chunk whose channels decay by themselves, with the gradient by hand.

What a_t finds before token t is s_t = (W H)_t + (U tril(A' K'^T, -1) V)_t, U = (I + tril(A' B'^T, -1))^-1, W = U A',
with the scaled vectors of scaling.py and H = S^T carried in. Written are -s_t under b'_t and v_t under k'_t.

Shapes: C tokens, K key width, V value width; any leading axes.
"""

from typing import Any

import torch
from torch import Tensor

from mclab.kernels.delta import triangular
from mclab.tables import once


def erased(a: Tensor, inputs: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """W [..., C, K], and what is written where H is zero: -s and below it v, [..., 2C, V]; from a' [..., C, K], b' over
    k' [..., 2C, K] and v [..., C, V]."""
    made: tuple[Tensor, Tensor] = _Erased.apply(a, inputs, v)  # type: ignore[no-untyped-call]
    return made


class _Erased(torch.autograd.Function):
    """With N = tril(A' K'^T, -1), e = U^T dW, f = U^T d(-s): dA' gets e, dV gets -N^T f; below the diagonal
    d(A' B'^T) = -e W^T - f (-s)^T and d(A' K'^T) = -f v^T."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, inputs: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        C = a.shape[-2]
        scores = a @ inputs.mT
        inverse, before = triangular.inverse_of(scores[..., :C]), scores[..., C:].tril(-1).neg_()
        reads, writes = inverse @ a, torch.cat((inverse @ (before @ v), v), -2)
        ctx.save_for_backward(a, inputs, inverse, before, reads, writes)
        return reads, writes

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        a, inputs, inverse, before, reads, writes = ctx.saved_tensors
        C, (grad_reads, grad_writes) = a.shape[-2], grads
        grad_a, grad_s = inverse.mT @ grad_reads, inverse.mT @ grad_writes[..., :C, :]
        scores = grad_s @ writes.mT
        scores[..., :C] += grad_a @ reads.mT
        scores *= _below(C, a.dtype, a.device)
        grad_v = before.mT @ grad_s
        return grad_a + scores @ inputs, scores.mT @ a, grad_v.add_(grad_writes[..., C:, :])


@once
def _below(C: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[C, 2C]: -1 below the diagonal of either half."""
    return torch.ones(C, C, dtype=dtype, device=device).tril(-1).neg().repeat(1, 2)

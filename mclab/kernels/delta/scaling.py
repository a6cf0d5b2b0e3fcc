"""The vectors of a chunk over the running products of its decays, one a channel.

With A_t the product of w over the chunk's tokens up to t: a'_t = a_t A_{t-1}, b'_j = b_j / A_j, k'_j =
k_j / A_j, and a'_t . b'_j is the sum over channels of a b times the product of w over j < m < t. The quotients are safe
while the smallest A is: RWKV-7's w is above e^-0.607, so that in chunks of 16 tokens 1 / A is below e^9.7 = 17,000.
Multiplying by A and dividing by it again costs a few roundings of relative size, whatever A is; only what is above the
diagonal, and thrown away, grows.

Shapes: C tokens, K key width; any leading axes.
"""

from typing import Any

import torch
from torch import Tensor


def scaled(logs: Tensor, a: Tensor, b: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """From log w, a, b, k [..., C, K]: a' [..., C, K]; b' over k' [..., 2C, K]; these times A_C; A [..., C, K]."""
    made: tuple[Tensor, Tensor, Tensor, Tensor] = _Scaled.apply(logs, a, b, k)  # type: ignore[no-untyped-call]
    return made


class _Scaled(torch.autograd.Function):
    """Backward: db = (d(b') + d(b'') A_C) / A and so on; what an exponent gets is gradient times value."""

    @staticmethod
    def forward(ctx: Any, logs: Tensor, a: Tensor, b: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        scale = logs.cumsum(-2).exp_()
        inverse = scale.reciprocal()
        inputs = torch.cat((b, k), -2)
        inputs.unflatten(-2, (2, -1)).mul_(inverse.unsqueeze(-3))
        rows = a.clone(memory_format=torch.contiguous_format)
        rows[..., 1:, :] *= scale[..., :-1, :]
        ctx.save_for_backward(a, b, k, scale, inverse, inputs)
        return rows, inputs, inputs * scale[..., -1:, :], scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        grad_rows, grad_inputs, grad_ends, grad_scale = grads
        a, b, k, scale, inverse, inputs = ctx.saved_tensors
        last, logs = scale[..., -1:, :], grad_scale * scale
        logs[..., -1:, :].addcmul_((grad_ends * inputs).sum(-2, keepdim=True), last)
        both = torch.addcmul(grad_inputs, grad_ends, last)
        both.unflatten(-2, (2, -1)).mul_(inverse.unsqueeze(-3))
        grad_b, grad_k = both.chunk(2, -2)
        logs.addcmul_(grad_b, b, value=-1).addcmul_(grad_k, k, value=-1)
        grad_a = grad_rows.clone(memory_format=torch.contiguous_format)
        grad_a[..., 1:, :] *= scale[..., :-1, :]
        logs[..., :-1, :].addcmul_(grad_a[..., 1:, :], a[..., 1:, :])
        return logs.flip(-2).cumsum(-2).flip(-2), grad_a, grad_b, grad_k

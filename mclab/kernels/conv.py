"""This module computes the causal depthwise convolution as shifted multiply-adds.

Grouped `conv1d` spends most of its backward pass on bookkeeping at these sizes. A few fused multiply-adds over the
whole tensor, and a sum for the weights, are two to three times faster (benchmarks/step.py). On devices where every call
is a launch, all J weights are applied in one call. Shapes: R replicas, B batch, T time, C channels, J kernel size;
weight J-1 belongs to the current token.

See docs/equations.md#queries-keys-and-values.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.dispatch import costs


def causal_conv_reference(x_RBTC: Tensor, weight_RJC: Tensor) -> Tensor:
    """Return y_t = sum_j w_j x_{t-(J-1)+j}, where tokens before the first are zero, as one sum per output token."""
    J = weight_RJC.shape[1]
    outputs = []
    for t in range(x_RBTC.shape[2]):
        seen = [(j, t - (J - 1) + j) for j in range(J) if t - (J - 1) + j >= 0]
        outputs.append(torch.stack([x_RBTC[:, :, at] * weight_RJC[:, None, j] for j, at in seen]).sum(0))
    return torch.stack(outputs, dim=2)


class _CausalConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        J, T = weight.shape[1], x.shape[2]
        if costs(x.device.type).few_calls:
            return (_seen(x, J, J - 1) * weight.mT[:, None, None]).sum(-1)
        y = x * weight[:, None, J - 1 : J]
        for lag in range(1, min(J, T)):
            y[:, :, lag:].addcmul_(x[:, :, :-lag], weight[:, None, J - 1 - lag, None])
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (grad,) = grads
        x, weight = ctx.saved_tensors
        J, T = weight.shape[1], x.shape[2]
        if costs(x.device.type).few_calls:
            grad_x = (_seen(grad, J, 0) * weight.flip(1).mT[:, None, None]).sum(-1)
            return grad_x, (grad.unsqueeze(-1) * _seen(x, J, J - 1)).sum((1, 2)).mT
        grad_x = grad * weight[:, None, J - 1 : J]
        grad_weight = torch.zeros_like(weight)
        grad_weight[:, J - 1] = (grad * x).sum((1, 2))
        for lag in range(1, min(J, T)):
            place = J - 1 - lag
            grad_x[:, :, :-lag].addcmul_(grad[:, :, lag:], weight[:, None, place, None])
            grad_weight[:, place] = (grad[:, :, lag:] * x[:, :, :-lag]).sum((1, 2))
        return grad_x, grad_weight


def _seen(x_RBTC: Tensor, J: int, before: int) -> Tensor:
    """Return the J tokens that begin `before` tokens before each token, [R, B, T, C, J]."""
    return F.pad(x_RBTC, (0, 0, before, J - 1 - before)).unfold(2, J, 1)


def causal_conv(x_RBTC: Tensor, weight_RJC: Tensor) -> Tensor:
    """Return the causal depthwise convolution of [R, B, T, C] with [R, J, C], [R, B, T, C]. First derivatives only."""
    result: Tensor = _CausalConv.apply(x_RBTC, weight_RJC)  # type: ignore[no-untyped-call]
    return result

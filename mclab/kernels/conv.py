"""Causal depthwise convolution as shifted multiply-adds.

Grouped `conv1d` spends most of its backward pass on bookkeeping at these sizes; a handful of fused multiply-adds over
the whole tensor and a sum for the weights do the same work two to three times faster (benchmarks/step.py). Where every
call is a launch all taps are taken at once.
Shapes: R replicas, B batch, T time, C channels, J taps; tap J-1 meets the current token.

See docs/equations.md#queries-keys-and-values.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.dispatch import costs


def causal_conv_reference(x_RBTC: Tensor, weight_RJC: Tensor) -> Tensor:
    """y_t = sum_j w_j x_{t-(J-1)+j}, tokens before the first being zero; one sum per output token."""
    taps = weight_RJC.shape[1]
    outputs = []
    for t in range(x_RBTC.shape[2]):
        seen = [(j, t - (taps - 1) + j) for j in range(taps) if t - (taps - 1) + j >= 0]
        outputs.append(torch.stack([x_RBTC[:, :, at] * weight_RJC[:, None, j] for j, at in seen]).sum(0))
    return torch.stack(outputs, dim=2)


class _CausalConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        taps, T = weight.shape[1], x.shape[2]
        if costs(x.device.type).few_calls:
            return (_seen(x, taps, taps - 1) * weight.mT[:, None, None]).sum(-1)
        y = x * weight[:, None, taps - 1 : taps]
        for back in range(1, min(taps, T)):
            y[:, :, back:].addcmul_(x[:, :, :-back], weight[:, None, taps - 1 - back, None])
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (grad,) = grads
        x, weight = ctx.saved_tensors
        taps, T = weight.shape[1], x.shape[2]
        if costs(x.device.type).few_calls:
            grad_x = (_seen(grad, taps, 0) * weight.flip(1).mT[:, None, None]).sum(-1)
            return grad_x, (grad.unsqueeze(-1) * _seen(x, taps, taps - 1)).sum((1, 2)).mT
        grad_x = grad * weight[:, None, taps - 1 : taps]
        grad_weight = torch.zeros_like(weight)
        grad_weight[:, taps - 1] = (grad * x).sum((1, 2))
        for back in range(1, min(taps, T)):
            tap = taps - 1 - back
            grad_x[:, :, :-back].addcmul_(grad[:, :, back:], weight[:, None, tap, None])
            grad_weight[:, tap] = (grad[:, :, back:] * x[:, :, :-back]).sum((1, 2))
        return grad_x, grad_weight


def _seen(x_RBTC: Tensor, taps: int, before: int) -> Tensor:
    """[R, B, T, C, J]: of each token those from `before` earlier on, as many as there are taps."""
    return F.pad(x_RBTC, (0, 0, before, taps - 1 - before)).unfold(2, taps, 1)


def causal_conv(x_RBTC: Tensor, weight_RJC: Tensor) -> Tensor:
    """Causal depthwise convolution, [R, B, T, C] x [R, J, C] to [R, B, T, C]. First derivatives only."""
    result: Tensor = _CausalConv.apply(x_RBTC, weight_RJC)  # type: ignore[no-untyped-call]
    return result

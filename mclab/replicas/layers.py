"""The small layers that own parameters with a replica axis (parameters.py), bf16 and rotary positions.

Shapes: R replicas, B batch, T time, D width in, E width out, C channels. Every activation is [R, B, T, ...]; a layer
multiplies replica r's activations by replica r's parameters, so replicas never mix.
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.constants import once
from mclab.kernels.conv import causal_conv
from mclab.kernels.norm import rms_normalise
from mclab.replicas.parameters import Constant, Normal, parameter


def linear(x_RBTD: Tensor, weight_RDE: Tensor) -> Tensor:
    """Multiply each replica's activations by its own matrix: [R, B, T, D] x [R, D, E] to [R, B, T, E]."""
    R, B, T, D = x_RBTD.shape
    return torch.bmm(x_RBTD.reshape(R, B * T, D), weight_RDE).view(R, B, T, weight_RDE.shape[-1])


class Linear(nn.Module):
    """A matrix without bias, [R, D, E]; its initial values have variance `gain`^2 / D."""

    def __init__(self, replicas: int, width_in: int, width_out: int, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = parameter(replicas, width_in, width_out, init=Normal(gain / math.sqrt(width_in)))

    def forward(self, x_RBTD: Tensor) -> Tensor:
        return linear(x_RBTD, self.weight)


class RMSNorm(nn.Module):
    """x / rms(x) * weight over the last axis or over each of `groups` equal parts of it (Zhang & Sennrich 2019)."""

    def __init__(self, replicas: int, width: int, groups: int = 1) -> None:
        super().__init__()
        self.groups = groups
        self.weight = parameter(replicas, width, init=Constant(1.0))

    def forward(self, x_RBTD: Tensor) -> Tensor:
        grouped = x_RBTD.unflatten(-1, (self.groups, -1))
        return rms_normalise(grouped).flatten(-2) * self.weight[:, None, None, :]


class ShortConv(nn.Module):
    """Causal depthwise convolution over time, `kernel_size` tokens wide."""

    def __init__(self, replicas: int, channels: int, kernel_size: int) -> None:
        super().__init__()
        self.weight = parameter(replicas, kernel_size, channels, init=Normal(1 / math.sqrt(kernel_size)), decays=False)

    def forward(self, x_RBTC: Tensor) -> Tensor:
        return causal_conv(x_RBTC, self.weight)

    def after(self, last_RBJC: Tensor | None, x_RBTC: Tensor) -> tuple[Tensor, Tensor]:
        """Return the convolution of the tokens after the inputs `last_RBJC`, and the last inputs for the tokens after
        these.

        `last_RBJC` is `None` before the first token.
        """
        before = self.weight.shape[1] - 1
        if last_RBJC is None:
            last_RBJC = x_RBTC.new_zeros(*x_RBTC.shape[:2], before, x_RBTC.shape[-1])
        seen = torch.cat((last_RBJC.to(x_RBTC.dtype), x_RBTC), 2)
        return self(seen)[:, :, before:], seen[:, :, seen.shape[2] - before :].clone()


class SwiGLU(nn.Module):
    """W_out(SiLU(W_gate x) * W_in x) with a hidden width of `factor` times D (Shazeer 2020)."""

    def __init__(self, replicas: int, width: int, factor: int, gain: float) -> None:
        super().__init__()
        self.up = Linear(replicas, width, 2 * factor * width)
        self.down = Linear(replicas, factor * width, width, gain)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        gate, value = self.up(x_RBTD).chunk(2, dim=-1)
        return self.down(F.silu(gate) * value)


def autocast(device: torch.device, enabled: bool) -> AbstractContextManager[object]:
    """Return a context of torch's autocast: bf16 if `enabled`, else fp32 everywhere.

    It has no effect on the device meta, which has no autocast. (`torch.amp.is_autocast_available` tells this of any
    device, but the compiler of torch 2.11 cannot trace it.)
    """
    if device.type == "meta":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return all `tensors` in fp32 if any of them is bf16 or fp16, else unchanged.

    Memories and gates sum over whole sequences, for which bf16 and fp16 have too few bits.
    """
    return tuple(x.float() for x in tensors) if any(x.dtype.itemsize < 4 for x in tensors) else tensors


def rotate(x: Tensor, start: int = 0) -> Tensor:
    """Rotary position embedding (Su et al. 2021) on [..., T, K], K even; position of the first token is `start`."""
    T, K = x.shape[-2:]
    # Decoding uses each other start only once, so only start 0 is stored.
    cos, sin = _turns_from(start, T, K, x.dtype, x.device) if start else _turns(T, K, x.dtype, x.device)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


@once
def _turns(T: int, K: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the result of `_turns_from` for start 0, which is computed once and stored."""
    return _turns_from(0, T, K, dtype, device)


def _turns_from(start: int, T: int, K: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [2, T, K / 2]: cosine and sine of every angle, which is computed in fp64."""
    frequency = 10000.0 ** (-torch.arange(0, K, 2, dtype=torch.float64, device=device) / K)
    angle = torch.arange(start, start + T, dtype=torch.float64, device=device)[:, None] * frequency
    return torch.stack((angle.cos(), angle.sin())).to(dtype)

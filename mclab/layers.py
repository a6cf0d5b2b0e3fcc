"""Parameters with a leading replica axis, and the small layers that own them.

Shapes: R replicas, B batch, T time, D width in, E width out, C channels. Every activation is [R, B, T, ...]; a layer
multiplies replica r's activations by replica r's parameters, so replicas never meet.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.kernels.conv import causal_conv
from mclab.kernels.norm import rms_normalise
from mclab.tables import once


@dataclass(frozen=True)
class Normal:
    """Start from independent normal values with this standard deviation."""

    std: float


@dataclass(frozen=True)
class Constant:
    """Start from one value everywhere."""

    value: float


@dataclass(frozen=True)
class Values:
    """Start from these values, rows of a matrix."""

    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Own:
    """Started by the module that holds it, a `StartsItself`."""


Start = Normal | Constant | Values | Own


class ReplicaParameter(nn.Parameter):
    """A parameter [R, *shape] that knows how each replica's slice starts and whether weight decay touches it."""

    init: Start
    decays: bool

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReplicaParameter":
        """As torch's, with what makes it start."""
        if id(self) in memo:
            return cast("ReplicaParameter", memo[id(self)])
        made = memo[id(self)] = ReplicaParameter(self.detach().clone(), self.requires_grad)
        made.init, made.decays = self.init, self.decays
        return made


class StartsItself(nn.Module, ABC):
    """A module that fills its parameters whose start is `Own`."""

    @abstractmethod
    def start(self, seeds: Sequence[int]) -> None:
        """Fill replica r from seeds[r] alone."""


def parameter(
    replicas: int, *shape: int, init: Start, decays: bool | None = None, dtype: torch.dtype | None = None
) -> ReplicaParameter:
    """An uninitialised parameter [R, *shape]; `initialise` fills it. By default matrices decay and vectors do not."""
    made = ReplicaParameter(torch.empty(replicas, *shape, dtype=dtype))
    made.init, made.decays = init, len(shape) > 1 if decays is None else decays
    return made


def initialise(module: nn.Module, seeds: Sequence[int]) -> None:
    """Draw replica r of every parameter on the CPU from hash(seeds[r], parameter name).

    A module that starts itself gets hash(seeds[r], its own name). A parameter's start depends on its own name and shape
    alone: adding a layer leaves the others as they were, and CPU and CUDA start alike.
    """
    for name, values in module.named_parameters():
        assert isinstance(values, ReplicaParameter), name
        if not isinstance(values.init, Own):
            for replica, seed in enumerate(seeds):
                values.data[replica] = _draw(values.init, values.shape[1:], seed, name)
    for name, part in module.named_modules():
        if isinstance(part, StartsItself):
            part.start([seed_of(seed, name) for seed in seeds])


def seed_of(seed: int, name: str) -> int:
    """The seed of one parameter's or module's start, for torch's generators."""
    digest = hashlib.sha256(f"init/{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _draw(init: Start, shape: torch.Size, seed: int, name: str) -> Tensor:
    if isinstance(init, Constant):
        return torch.full(shape, init.value)
    if isinstance(init, Values):
        return torch.tensor(init.rows)
    assert isinstance(init, Normal)
    generator = torch.Generator().manual_seed(seed_of(seed, name))
    return init.std * torch.randn(shape, generator=generator, dtype=torch.float32)


def linear(x_RBTD: Tensor, weight_RDE: Tensor) -> Tensor:
    """Multiply each replica's activations by its own matrix: [R, B, T, D] x [R, D, E] to [R, B, T, E]."""
    R, B, T, D = x_RBTD.shape
    return torch.bmm(x_RBTD.reshape(R, B * T, D), weight_RDE).view(R, B, T, weight_RDE.shape[-1])


class Linear(nn.Module):
    """A matrix without bias, [R, D, E], started at variance 1/D times `gain` squared."""

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
    """Causal depthwise convolution over time with `taps` weights a channel."""

    def __init__(self, replicas: int, channels: int, taps: int) -> None:
        super().__init__()
        self.weight = parameter(replicas, taps, channels, init=Normal(1 / math.sqrt(taps)), decays=False)

    def forward(self, x_RBTC: Tensor) -> Tensor:
        return causal_conv(x_RBTC, self.weight)

    def after(self, last_RBJC: Tensor | None, x_RBTC: Tensor) -> tuple[Tensor, Tensor]:
        """The same of tokens that follow on the `last` inputs, at first None; and the last inputs for those to come."""
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
    """bf16 where torch would take it, or, not enabled, nowhere; nothing on a device that knows no autocast."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All in fp32 where any of them is bf16 or fp16: memories and gates sum over whole sequences, which so few bits do
    not survive."""
    return tuple(x.float() for x in tensors) if any(x.dtype.itemsize < 4 for x in tensors) else tensors


def rotate(x: Tensor, start: int = 0) -> Tensor:
    """Rotary position embedding (Su et al. 2021) on [..., T, K], K even; position of the first token is `start`."""
    T, K = x.shape[-2:]
    # Decoding asks for each start once: nothing to keep.
    cos, sin = _turns_from(start, T, K, x.dtype, x.device) if start else _turns(T, K, x.dtype, x.device)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


@once
def _turns(T: int, K: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Those of the first T positions."""
    return _turns_from(0, T, K, dtype, device)


def _turns_from(start: int, T: int, K: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[2, T, K / 2]: cosine and sine of every angle, which is computed in fp64."""
    frequency = 10000.0 ** (-torch.arange(0, K, 2, dtype=torch.float64, device=device) / K)
    angle = torch.arange(start, start + T, dtype=torch.float64, device=device)[:, None] * frequency
    return torch.stack((angle.cos(), angle.sin())).to(dtype)

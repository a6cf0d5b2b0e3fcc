"""Log-linear attention: a token reads its past in buckets of doubling size, each with its weight (arXiv 2506.04761).

y_t = sum over levels l of lambda_t^(l) S_t^(l) q_t with lambda = softplus(L_l times a projection of x_t); each head has
a learned L_l. The rule that writes S is Mamba-2's or the gated delta rule's. This differs from a cache over log
segments: the past of every token is divided anew, down to single tokens; a bucket still decays; and the weights do not
sum to one.

Shapes: R replicas, B batch, T time, D model width, H heads, G = R*B*H folded, C chunk, L levels.

See docs/equations.md#log-linear-attention.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.config.model import LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.log_linear import chunkwise
from mclab.memories import MEMORIES
from mclab.models.memory import Projected
from mclab.replicas.layers import autocast, linear, rotate
from mclab.replicas.parameters import Constant, Normal, parameter

#: Tokens in a chunk, a power of two; the result does not depend on it.
CHUNK = 64
#: Chunk forms by the name of their rule under `model.mixer.rule`.
RULES = {"mamba2": chunkwise.decayed, "gated_delta": chunkwise.delta}


class LogLinear(Projected):
    """Log-linear attention between the projections of a memory."""

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        assert isinstance(mixer, LogLinearMixer)
        core = LogLinearRead(replicas, model.dim, model.heads, length, mixer)
        super().__init__(replicas, model, mixer, core, gain)


class LogLinearRead(nn.Module):
    """Maps queries, keys and values to one output per token.

    The training length `length` sets the number of weights.
    """

    def __init__(self, replicas: int, width: int, heads: int, length: int, mixer: LogLinearMixer) -> None:
        super().__init__()
        self.heads, self.parts = heads, RULES[mixer.rule]
        self.memory = MEMORIES[mixer.rule](replicas, width, heads, MemoryMixer(memory=mixer.rule))
        count = chunkwise.count_levels(length)
        self.project = parameter(replicas, width, heads * count, init=Normal(1 / math.sqrt(width)))
        self.level = parameter(replicas, heads, count, init=Constant(1.0), decays=False)

    def forward(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool = False) -> Tensor:
        """Return the output [R, B, T, D]; all arguments have this shape.

        States are in fp32 under bf16, as in CachingLayer.
        """
        if torch.bfloat16 in (q.dtype, k.dtype, v.dtype):
            x, q, k, v = (z.float() for z in (x, q, k, v))
        with autocast(x.device, False):
            return self._read(x, q, k, v, rotary)

    def _read(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool) -> Tensor:
        R, _, T, _ = x.shape
        q_GTK, k_GTK, v_GTV = (self._fold(z) for z in (q, k, v))
        if rotary:
            q_GTK, k_GTK = rotate(q_GTK), rotate(k_GTK)
        tokens = self.memory.tokens(x, k_GTK, v_GTV)
        weights_GTL = self._weights(x)
        size = min(CHUNK, 1 << (T - 1).bit_length())
        eta, log_alpha = (_cut(rate, size) for rate in tokens.rates)
        k_cut, v_cut = _cut(tokens.k, size), _cut(tokens.v, size)
        parts = self.parts(_cut(q_GTK, size), k_cut, v_cut, coefficients(Rates(eta, log_alpha)))
        y_GTV = chunkwise.read(parts, v_cut, _cut(weights_GTL, size)).transpose(0, 1).flatten(1, 2)[:, :T]
        skipped = self.memory.skip(tokens)
        if skipped is not None:
            y_GTV = y_GTV + skipped
        return y_GTV.unflatten(0, (R, -1, self.heads)).transpose(2, 3).flatten(-2)

    def _weights(self, x_RBTD: Tensor) -> Tensor:
        """Return the weights lambda of the levels, [G, T, L]."""
        logits_RBTHL = linear(x_RBTD, self.project).unflatten(-1, (self.heads, -1)) * self.level[:, None, None]
        return F.softplus(logits_RBTHL).transpose(2, 3).flatten(0, 2)

    def _fold(self, x_RBTD: Tensor) -> Tensor:
        return x_RBTD.unflatten(-1, (self.heads, -1)).transpose(2, 3).flatten(0, 2)


def _cut(x: Tensor, size: int) -> Tensor:
    """Cut [G, T, ...] into [M, G, C, ...], padded with zeros at the end."""
    short = -x.shape[1] % size
    if short:
        x = F.pad(x, (*(0, 0) * (x.dim() - 2), 0, short))
    return x.unflatten(1, (-1, size)).transpose(0, 1).contiguous()

"""The projections around a memory (`Projected`), and the mixer of a cached memory (`CachedMemory`).

Shapes: R replicas, B batch, T time, D model width, C = 3 D channels.

See docs/equations.md#queries-keys-and-values.
"""

from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.nn import functional as F

from mclab.caching.decoding import Inputs, advance
from mclab.caching.decoding_state import DecodingState
from mclab.caching.layer import CachingLayer
from mclab.config.model import LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.kernels.norm import unit
from mclab.replicas.layers import Linear, RMSNorm, ShortConv


class Projected(nn.Module):
    """Projections, short convolution, SiLU, L2-norm on q and k, a core, per-head norm, output projection.

    The core maps x, q, k, v, each [R, B, T, D], and whether to rotate q and k, to [R, B, T, D]. This form is that of
    Titans (arXiv 2501.00663); the Memory Caching paper does not give one.
    """

    def __init__(
        self,
        replicas: int,
        model: ModelConfig,
        mixer: MemoryMixer | LogLinearMixer,
        core: nn.Module,
        gain: float,
    ) -> None:
        super().__init__()
        dim, self.heads, self.rotary = model.dim, model.heads, model.position == "rotary"
        self.qk_norm = mixer.qk_norm
        self.qkv = Linear(replicas, dim, 3 * dim)
        self.conv = ShortConv(replicas, 3 * dim, model.conv) if model.conv else nn.Identity()
        self.caching = core
        self.norm = RMSNorm(replicas, dim, groups=model.heads)
        self.out_gate = Linear(replicas, dim, dim) if mixer.out_gate else None
        self.out = Linear(replicas, dim, dim, gain)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        q, k, v = self._split_qkv(self.conv(self.qkv(x_RBTD)))
        return self._output(x_RBTD, self.caching(x_RBTD, q, k, v, self.rotary))

    def _split_qkv(self, mixed_RBTC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values from the convolution's output."""
        q, k, v = F.silu(mixed_RBTC).chunk(3, dim=-1)
        return (self._unit(q), self._unit(k), v) if self.qk_norm else (q, k, v)

    def _output(self, x_RBTD: Tensor, read_RBTD: Tensor) -> Tensor:
        """Return the mixer's output, from the core's output, which is fp32 even if everything else is bf16."""
        y = self.norm(read_RBTD).to(x_RBTD.dtype)
        if self.out_gate is not None:
            y = y * F.silu(self.out_gate(x_RBTD))
        mixed: Tensor = self.out(y)
        return mixed

    def _unit(self, x_RBTD: Tensor) -> Tensor:
        return unit(x_RBTD.unflatten(-1, (self.heads, -1))).flatten(-2)


@dataclass(frozen=True)
class MemoryPast:
    """The state of a sequence, from which its next token continues.

    The names of the fields are those in a stored cache (models/cache.py).
    """

    taps: Tensor | None = None
    """[R, B, J - 1, C]: the last inputs of the convolution, whose kernel has J tokens."""
    progress: DecodingState = field(default_factory=DecodingState)


class CachedMemory(Projected):
    """The mixer of a cached memory: `Projected` with a caching layer as its core."""

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        assert isinstance(mixer, MemoryMixer)
        core = CachingLayer(replicas, model.dim, model.heads, length, mixer)
        super().__init__(replicas, model, mixer, core, gain)

    def after(self, past: MemoryPast, x_RBTD: Tensor) -> tuple[Tensor, MemoryPast]:
        """Return the output of `forward` for tokens that follow `past`, and the state after these tokens. R is 1."""
        assert isinstance(self.caching, CachingLayer)
        mixed, taps = self.qkv(x_RBTD), past.taps
        if isinstance(self.conv, ShortConv):
            mixed, taps = self.conv.after(taps, mixed)
        inputs = Inputs(x_RBTD, *self._split_qkv(mixed))
        y, progress = advance(self.caching, inputs, self.rotary, past.progress)
        return self._output(x_RBTD, y), MemoryPast(taps, progress)

"""What stands around a memory as a mixer, and the cached memory in it.

Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#queries-keys-and-values.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from mclab.caching.layer import CachingLayer
from mclab.config.model import LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.kernels.norm import unit
from mclab.layers import Linear, RMSNorm, ShortConv


class Projected(nn.Module):
    """Projections, short convolution, SiLU, L2-norm on q and k, a core, per-head norm, output projection.

    The core goes from x, q, k, v [R, B, T, D], and whether to rotate q and k, to [R, B, T, D].
    The recipe is that of Titans (arXiv 2501.00663); the Memory Caching paper does not give one.
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
        q, k, v = F.silu(self.conv(self.qkv(x_RBTD))).chunk(3, dim=-1)
        if self.qk_norm:
            q, k = self._unit(q), self._unit(k)
        y = self.norm(self.caching(x_RBTD, q, k, v, self.rotary))
        if self.out_gate is not None:
            y = y * F.silu(self.out_gate(x_RBTD))
        mixed: Tensor = self.out(y)
        return mixed

    def _unit(self, x_RBTD: Tensor) -> Tensor:
        return unit(x_RBTD.unflatten(-1, (self.heads, -1))).flatten(-2)


class CachedMemory(Projected):
    """A memory with its cache."""

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        assert isinstance(mixer, MemoryMixer)
        core = CachingLayer(replicas, model.dim, model.heads, length, mixer)
        super().__init__(replicas, model, mixer, core, gain)

"""A memory and window attention in one layer: Titans' Memory as Layer and Memory as Gate (arXiv 2501.00663, section 4).

Both leave out the paper's persistent tokens. Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#hybrids.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer, ModelConfig
from mclab.models.attention import Attention, AttentionPast
from mclab.models.memory import CachedMemory, MemoryPast
from mclab.replicas.layers import RMSNorm
from mclab.replicas.parameters import Constant, parameter


@dataclass(frozen=True)
class HybridPast:
    """The states of the memory and of the attention, from which the next token of a sequence continues."""

    memory: MemoryPast = field(default_factory=MemoryPast)
    attention: AttentionPast = field(default_factory=AttentionPast)


class MemoryAsLayer(nn.Module):
    """m + attention(norm(m)) with m = memory(x): the attention sees only what went through the memory.

    Eqs. 30 and 31 print attention(memory(x)); the paper leaves norms and residual connections, which all its blocks
    have, out of its equations (section 4.4). Without this residual connection the layer learns far more slowly. With
    another one around the memory, the attention would also see the layer's input, as it does in a layer pattern such as
    [titans, attention/16].
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        self.memory, self.attention = _both(replicas, model, mixer, length, gain)
        self.norm = RMSNorm(replicas, model.dim)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        remembered = self.memory(x_RBTD)
        mixed: Tensor = remembered + self.attention(self.norm(remembered))
        return mixed

    def after(self, past: HybridPast, x_RBTD: Tensor) -> tuple[Tensor, HybridPast]:
        """Return the output of `forward` for tokens that follow `past`, and the state after these tokens. R is 1."""
        remembered, memory = self.memory.after(past.memory, x_RBTD)
        attended, attention = self.attention.after(past.attention, self.norm(remembered))
        return remembered + attended, HybridPast(memory, attention)


class MemoryAsGate(nn.Module):
    """norm(attention(x)) * sigmoid(norm(memory(x))), both of the layer's input.

    The operator (x) in the paper's eq. 28 is a gate: both outputs are normalised with learned vectors, and a
    non-linearity follows. Here both norms are RMS norms, only the memory's side has the non-linearity, and the learned
    vector of the attention's norm starts small, like every branch of the residual stream.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        self.memory, self.attention = _both(replicas, model, mixer, length, 1.0)
        self.memory_norm, self.attention_norm = RMSNorm(replicas, model.dim), RMSNorm(replicas, model.dim)
        self.attention_norm.weight = parameter(replicas, model.dim, init=Constant(gain))

    def forward(self, x_RBTD: Tensor) -> Tensor:
        return self._gated(self.memory(x_RBTD), self.attention(x_RBTD))

    def after(self, past: HybridPast, x_RBTD: Tensor) -> tuple[Tensor, HybridPast]:
        """Return the output of `forward` for tokens that follow `past`, and the state after these tokens. R is 1."""
        remembered, memory = self.memory.after(past.memory, x_RBTD)
        attended, attention = self.attention.after(past.attention, x_RBTD)
        return self._gated(remembered, attended), HybridPast(memory, attention)

    def _gated(self, remembered_RBTD: Tensor, attended_RBTD: Tensor) -> Tensor:
        mixed: Tensor = self.attention_norm(attended_RBTD) * torch.sigmoid(self.memory_norm(remembered_RBTD))
        return mixed


def _both(replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> tuple[CachedMemory, Attention]:
    """Return the cached memory and the attention of a hybrid; `gain` scales the initial output projections of both."""
    assert isinstance(mixer, MemoryMixer)
    window = AttentionMixer(window=mixer.window)
    return CachedMemory(replicas, model, mixer, length, gain), Attention(replicas, model, window, length, gain)


#: Hybrids by their name under `model.mixer.hybrid`.
HYBRIDS: dict[str, type[MemoryAsLayer | MemoryAsGate]] = {"mal": MemoryAsLayer, "mag": MemoryAsGate}

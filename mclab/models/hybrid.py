"""A memory and window attention in one layer: Titans' Memory as Layer and Memory as Gate (arXiv 2501.00663, section 4).

Both without the paper's persistent tokens. Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#hybrids.
"""

import torch
from torch import Tensor, nn

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer, ModelConfig
from mclab.layers import Constant, RMSNorm, parameter
from mclab.models.attention import Attention
from mclab.models.memory import CachedMemory


class MemoryAsLayer(nn.Module):
    """m + attention(norm(m)) with m = memory(x): the attention sees nothing that did not go through the memory.

    Eqs. 30 and 31 print attention(memory(x)); the paper leaves norms and residual connections, which all its blocks
    have, out of its equations (section 4.4). Without this residual it learns far more slowly; with one around the
    memory as well the attention would see the layer's input, as in a layer pattern, e.g. [titans, attention/16].
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        self.memory, self.attention = _both(replicas, model, mixer, length, gain)
        self.norm = RMSNorm(replicas, model.dim)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        remembered = self.memory(x_RBTD)
        mixed: Tensor = remembered + self.attention(self.norm(remembered))
        return mixed


class MemoryAsGate(nn.Module):
    """norm(attention(x)) * sigmoid(norm(memory(x))), both of the layer's input.

    The paper's (x) in eq. 28 is a gate: both outputs are normalised with learned vectors, followed by a non-linearity.
    Ours: both norms are RMS, the non-linearity is on the memory's side alone, and the attention's vector starts small
    as every branch of the residual stream does.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        self.memory, self.attention = _both(replicas, model, mixer, length, 1.0)
        self.memory_norm, self.attention_norm = RMSNorm(replicas, model.dim), RMSNorm(replicas, model.dim)
        self.attention_norm.weight = parameter(replicas, model.dim, init=Constant(gain))

    def forward(self, x_RBTD: Tensor) -> Tensor:
        gate = torch.sigmoid(self.memory_norm(self.memory(x_RBTD)))
        mixed: Tensor = self.attention_norm(self.attention(x_RBTD)) * gate
        return mixed


def _both(replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> tuple[CachedMemory, Attention]:
    """The memory, cached as its keys say, and the attention; `gain` scales the start of both outputs."""
    assert isinstance(mixer, MemoryMixer)
    window = AttentionMixer(window=mixer.window)
    return CachedMemory(replicas, model, mixer, length, gain), Attention(replicas, model, window, length, gain)


#: By the word that stands under `model.mixer.hybrid`.
HYBRIDS = {"mal": MemoryAsLayer, "mag": MemoryAsGate}

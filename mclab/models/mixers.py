"""Sequence mixers by their name under `model.mixer.name`: causal maps from [R, B, T, D] to [R, B, T, D]."""

from typing import Protocol

from torch import nn

from mclab.config.model import MemoryMixer, Mixer, ModelConfig
from mclab.models.attention import Attention
from mclab.models.conv import GatedConv
from mclab.models.hybrid import HYBRIDS
from mclab.models.log_linear import LogLinear
from mclab.models.memory import CachedMemory
from mclab.models.module import Modules


class MixerType(Protocol):
    """A function that makes the mixer of a block from the keys in `mixer`.

    `gain` scales the initial output projection.
    """

    def __call__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> nn.Module: ...


def memory(replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> nn.Module:
    """Return a cached memory, alone or with the attention of its hybrid."""
    assert isinstance(mixer, MemoryMixer)
    kind: MixerType = CachedMemory if mixer.hybrid == "none" else HYBRIDS[mixer.hybrid]
    return kind(replicas, model, mixer, length, gain)


MIXERS: dict[str, MixerType] = {
    "memory": memory,
    "attention": Attention,
    "log_linear": LogLinear,
    "conv": GatedConv,
    "module": Modules,
}

"""What a model looks like to a config: the mixers' axes, the mixer of each layer, the language model around them."""

from mclab.config.model.lm import ModelConfig, Position
from mclab.config.model.mixers import (
    MIXERS,
    Aggregate,
    AttentionMixer,
    Connector,
    ConvMixer,
    Gate,
    Init,
    Memory,
    MemoryMixer,
    Mixer,
    Pool,
)
from mclab.config.model.module import ModuleMixer

__all__ = [
    "MIXERS",
    "Aggregate",
    "AttentionMixer",
    "Connector",
    "ConvMixer",
    "Gate",
    "Init",
    "Memory",
    "MemoryMixer",
    "Mixer",
    "ModelConfig",
    "ModuleMixer",
    "Pool",
    "Position",
]

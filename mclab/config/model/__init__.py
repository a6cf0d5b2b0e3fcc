"""The keys of a model: the mixers and their axes, the mixer of each layer, the language model around them."""

from mclab.config.model.attention import AttentionMixer
from mclab.config.model.base import MixerConfig
from mclab.config.model.cache import Aggregate, Connector, Gate, Hybrid, Init, Pool
from mclab.config.model.conv import ConvMixer
from mclab.config.model.lm import ModelConfig, Position
from mclab.config.model.log_linear import LevelRule, LogLinearMixer
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.mixers import MIXERS, Mixer
from mclab.config.model.module import ModuleMixer
from mclab.config.model.rules import RULES, Memory, Rule

__all__ = [
    "MIXERS",
    "RULES",
    "Aggregate",
    "AttentionMixer",
    "Connector",
    "ConvMixer",
    "Gate",
    "Hybrid",
    "Init",
    "LevelRule",
    "LogLinearMixer",
    "Memory",
    "MemoryMixer",
    "Mixer",
    "MixerConfig",
    "ModelConfig",
    "ModuleMixer",
    "Pool",
    "Position",
    "Rule",
]

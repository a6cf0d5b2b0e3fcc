"""Decide whether a Triton kernel computes the rule of a mixer."""

import torch

from mclab.config.model import MemoryMixer
from mclab.kernels.dispatch import Shape, resolve
from mclab.memories.base import Tokens


def triton_precision(mixer: MemoryMixer, tokens: Tokens) -> str | None:
    """Return the training precision in which a Triton kernel computes the rule of `mixer`; `None` if torch computes it.

    In a program that `torch.compile` traces, torch computes every rule.
    """
    if torch.compiler.is_compiling():
        return None
    _, T, K = tokens.k.shape
    precision = "fp64" if tokens.k.dtype == torch.float64 else "bf16" if tokens.low else "fp32"
    choice = resolve(mixer.memory, str(tokens.k.device), precision, Shape(T, K), mixer=mixer)
    return precision if choice.form == "triton" else None

"""The keys of log-linear attention."""

from typing import Literal

from pydantic import Field

from mclab.config.model.base import Around, MixerConfig
from mclab.config.model.rules import RULES

LevelRule = Literal["mamba2", "gated_delta"]


class LogLinearMixer(MixerConfig):
    """Log-linear attention (arXiv 2506.04761): it reads a decaying memory for each level of the past with its own
    weight.

    Each level covers twice as many tokens as the level before.
    """

    name: Literal["log_linear"] = "log_linear"
    rule: LevelRule = Field("mamba2", description="the update rule of every level")
    qk_norm: bool = Field(True, description="L2-normalise queries and keys")
    out_gate: bool = Field(False, description="multiply the output by SiLU of a projection of the input")

    @property
    def parts(self) -> frozenset[str]:
        return super().parts | {f"memory.{self.rule}"}

    def levels(self, length: int) -> int:
        """Return the number of levels in a sequence, ceil(log2 T) + 1."""
        return (length - 1).bit_length() + 1

    def parameters(self, model: Around, length: int) -> int:
        """Return the number of parameters for sequences of `length` tokens, the training length.

        It counts projections, convolution, norm, the rule's rates, and the projections of the weights of levels.
        """
        dim, heads = model.dim, model.heads
        rule = RULES[self.rule].parameters(dim, heads)
        weights = heads * self.levels(length) * (dim + 1)
        return (4 + self.out_gate) * dim**2 + (3 * model.conv + 1) * dim + rule + weights

    def state(self, model: Around, length: int) -> tuple[int, int]:
        """Return the state size in floats: (fixed, cached).

        The last inputs of the convolution and one matrix are fixed; a matrix for each further level that the last token
        reads is cached.
        """
        size = model.dim**2 // model.heads
        return max(0, model.conv - 1) * 3 * model.dim + size, (length - 1).bit_count() * size

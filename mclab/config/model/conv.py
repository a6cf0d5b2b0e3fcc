"""The gated convolution's keys."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from mclab.config.lengths import Lengths
from mclab.config.model.base import Around, MixerConfig, taps_beyond


class ConvMixer(MixerConfig):
    """A short causal convolution, gated by a projection (Zoology's BaseConv, arXiv 2312.04927)."""

    number: ClassVar[str | None] = "kernel"

    name: Literal["conv"] = "conv"
    kernel: int = Field(3, ge=1, le=4096, description="taps of the causal depthwise convolution")

    @property
    def obeys(self) -> frozenset[str]:
        return frozenset()

    def oddities(self, lengths: Lengths) -> Iterator[str]:
        yield from taps_beyond("kernel", self.kernel, lengths)

    def parameters(self, model: Around, length: int) -> int:
        """The gate's matrix, taps, two biases."""
        return model.dim**2 + (self.kernel + 2) * model.dim

    def state(self, model: Around, length: int) -> tuple[int, int]:
        """The inputs before the next one that its filter reaches."""
        return (self.kernel - 1) * model.dim, 0

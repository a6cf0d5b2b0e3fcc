"""The gated convolution's keys."""

from typing import ClassVar, Literal

from pydantic import Field

from mclab.config.model.base import Around, MixerConfig


class ConvMixer(MixerConfig):
    """A short causal convolution, gated by a projection (Zoology's BaseConv, arXiv 2312.04927)."""

    number: ClassVar[str | None] = "kernel"

    name: Literal["conv"] = "conv"
    kernel: int = Field(3, ge=1, le=4096, description="kernel size of the causal depthwise convolution")

    @property
    def model_keys(self) -> frozenset[str]:
        return frozenset()

    def parameters(self, model: Around, length: int) -> int:
        """Return the number of parameters: the gate's matrix, the filter and two biases."""
        return model.dim**2 + (self.kernel + 2) * model.dim

    def state(self, model: Around, length: int) -> tuple[int, int]:
        """Return the state size in floats, (fixed, cached): the last inputs, which the filter still reaches."""
        return (self.kernel - 1) * model.dim, 0

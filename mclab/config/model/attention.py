"""Softmax attention: its keys, and the preset Transformer++."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from mclab.config.model.base import Around, MixerConfig

#: Values of `model.mixer.name` that stand for another mixer with some keys set. Transformer++ is attention with rotary
#: positions and no convolution; its SwiGLU and RMSNorm are in every model here.
PRESETS: dict[str, dict[str, Any]] = {"transformer++": {"name": "attention", "rotary": True, "conv": 0}}


class AttentionMixer(MixerConfig):
    """Causal softmax attention."""

    number: ClassVar[str | None] = "window"

    name: Literal["attention"] = "attention"
    window: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="number of tokens that a token attends to, itself included; null: all tokens before it",
    )
    rotary: bool | None = Field(None, description="rotate queries and keys; null: as model.position says")
    conv: int | None = Field(
        None,
        ge=0,
        le=4096,
        description="kernel size of the mixer's own convolution on q, k and v; 0: none; null: as model.conv says",
    )

    @property
    def model_keys(self) -> frozenset[str]:
        own = {key for key, value in (("position", self.rotary), ("conv", self.conv)) if value is not None}
        return super().model_keys - own

    def rotates(self, position: str) -> bool:
        return position == "rotary" if self.rotary is None else self.rotary

    def kernel_size(self, conv: int) -> int:
        """Return the kernel size of the convolution in a model whose key `conv` is `conv`."""
        return conv if self.conv is None else self.conv

    def relative_to(self, position: str, conv: int) -> Self:
        """Return this attention for a model with these keys: `rotary` and `conv` become null if they equal the model's.

        Before this, neither may be null. A preset stays unchanged if only one of its two keys equals the model's, so
        that it keeps its name.
        """
        wanted = (("rotary", position == "rotary"), ("conv", conv))
        same = [key for key, value in wanted if getattr(self, key) == value]
        if len(same) == 1 and (self.rotary, self.conv) == (True, 0):
            return self
        return self.model_copy(update=dict.fromkeys(same))

    def parameters(self, model: Around, length: int) -> int:
        """Return the number of parameters: projections of q, k, v and the output, and the convolution."""
        return 4 * model.dim**2 + 3 * self.kernel_size(model.conv) * model.dim

    def state(self, model: Around, length: int) -> tuple[int, int]:
        """Return the state size in floats: (fixed, cached).

        The last inputs of the convolution are fixed. Keys and values are fixed if there is a window, else cached.
        """
        inputs = max(0, self.kernel_size(model.conv) - 1) * 3 * model.dim
        kept = 2 * min(self.window or length, length) * model.dim
        return (inputs, kept) if self.window is None else (inputs + kept, 0)

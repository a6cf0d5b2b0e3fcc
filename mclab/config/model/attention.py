"""Softmax attention: the keys, and the preset Transformer++."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from mclab.config.lengths import Lengths
from mclab.config.model.base import Around, MixerConfig, taps_beyond

#: What a name under `model.mixer.name` that is no mixer of its own stands for. Transformer++ is attention with rotary
#: positions and no convolution; its SwiGLU and RMSNorm are the model's own.
PRESETS: dict[str, dict[str, Any]] = {"transformer++": {"name": "attention", "rotary": True, "conv": 0}}


class AttentionMixer(MixerConfig):
    """Causal softmax attention."""

    number: ClassVar[str | None] = "window"

    name: Literal["attention"] = "attention"
    window: int | None = Field(
        None, ge=1, le=2**20, description="tokens that a token sees, itself included; null: all before it"
    )
    rotary: bool | None = Field(None, description="rotate queries and keys; null: as model.position says")
    conv: int | None = Field(
        None, ge=0, le=4096, description="taps of its convolution on q, k and v, 0: none; null: model.conv"
    )

    @property
    def obeys(self) -> frozenset[str]:
        own = {key for key, value in (("position", self.rotary), ("conv", self.conv)) if value is not None}
        return super().obeys - own

    def turns(self, position: str) -> bool:
        return position == "rotary" if self.rotary is None else self.rotary

    def taps(self, conv: int) -> int:
        """Taps in a model whose own are `conv`."""
        return conv if self.conv is None else self.conv

    def beside(self, position: str, conv: int) -> Self:
        """The same attention in a model with these keys: null where they say the same. All its keys must be given.

        What only one of them says stays a preset where it is one: a pattern has a word for it.
        """
        same = [key for key, said in (("rotary", position == "rotary"), ("conv", conv)) if getattr(self, key) == said]
        if len(same) == 1 and (self.rotary, self.conv) == (True, 0):
            return self
        return self.model_copy(update=dict.fromkeys(same))

    def parameters(self, model: Around, length: int) -> int:
        """Projections of q, k, v and the output; taps."""
        return 4 * model.dim**2 + 3 * self.taps(model.conv) * model.dim

    def state(self, model: Around, length: int) -> tuple[int, int]:
        """Last inputs of the convolution, keys and values: a window of them is fixed, all of them grow."""
        taps = max(0, self.taps(model.conv) - 1) * 3 * model.dim
        kept = 2 * min(self.window or length, length) * model.dim
        return (taps, kept) if self.window is None else (taps + kept, 0)

    def oddities(self, lengths: Lengths) -> Iterator[str]:
        if self.window is not None and self.window >= lengths.longest:
            yield f"window: {self.window} is not below {lengths.most}: a token sees all before it, as with null"
        elif self.window is not None and self.window >= lengths.trained:
            yield f"window: {self.window} is not below {lengths.training}: it leaves tokens out in tests alone"
        if self.conv is not None:
            yield from taps_beyond("conv", self.conv, lengths)

"""The language model around the mixers, and the rules between its keys."""

from typing import Literal

from pydantic import Field, model_validator

from mclab.config.model.memory import MemoryMixer
from mclab.config.model.mixers import MIXER, MOST_NAMES, Mixer, Pattern, cycled, forms, layer_heads, mixer_of
from mclab.config.model.module import ModuleMixer
from mclab.config.strict import Strict

Position = Literal["none", "rotary", "learned"]

#: The largest distance from a number at which `_divisors_beside` looks for divisors.
_NEAR = 1000


def _divisors_beside(number: int, whole: int) -> list[int]:
    """Return the nearest divisors of `whole` below and above `number`, at most `_NEAR` away from it."""
    below = (each for each in range(number - 1, max(0, number - _NEAR), -1) if whole % each == 0)
    above = (each for each in range(number + 1, min(whole, number + _NEAR) + 1) if whole % each == 0)
    return [each for each in (next(below, None), next(above, None)) if each is not None]


class ModelConfig(Strict):
    """A language model of `layers` blocks (mixer, then SwiGLU MLP), whose output head is tied to the embedding.

    Before each mixer and each MLP there is an RMSNorm.
    """

    dim: int = Field(32, ge=1, le=2**16, description="model width D")
    layers: int = Field(2, ge=1, le=MOST_NAMES, description="number of blocks")
    heads: int = Field(1, ge=1, le=4096, description="number of heads; K = V = dim / heads")
    mlp: int = Field(2, ge=0, le=256, description="hidden width of the SwiGLU MLP in units of dim; 0 leaves it out")
    position: Position = Field(
        "none", description="rotary: rotate q and k; learned: add a learned table to the embedding; none: no position"
    )
    conv: int = Field(
        4, ge=0, le=4096, description="kernel size of the causal depthwise convolution on q, k and v; 0: none"
    )
    mixer: Mixer = Field(
        default_factory=MemoryMixer,
        description="the sequence mixer: a name alone (a mixer, transformer++, a memory such as titans, or your own "
        "my_mixers.Mixer), or a mapping of its keys",
    )
    pattern: Pattern = Field(
        (),
        description="names of the layers' mixers, repeated from the start for more layers; null: mixer in all layers; "
        f"names: mixer, {', '.join(forms(layer_heads()))} (a memory without caching)",
    )

    @model_validator(mode="after")
    def _divides(self) -> "ModelConfig":
        if self.dim % self.heads:
            near = self.heads * max(1, round(self.dim / self.heads))
            ways = " or ".join(map(str, _divisors_beside(self.heads, self.dim)))
            heads = f"heads {ways}, or " if ways else ""
            raise ValueError(f"heads: {self.heads} heads do not divide dim {self.dim}; take {heads}dim {near}")
        return self

    @model_validator(mode="after")
    def _rotates_pairs(self) -> "ModelConfig":
        """Raise `ValueError` for an odd head width if a layer is rotary, since rotations act on pairs of channels."""
        layers = zip(self.layer_names, self.mixers, strict=True)
        rotated = [name for name, mixer in layers if mixer.rotates(self.position)]
        if rotated and self.head_dim % 2:
            raise ValueError(
                f"{self._rotated_by(rotated[0])} needs an even head width, but dim / heads is {self.head_dim}; take "
                f"dim {self.dim + self.heads}"
            )
        return self

    def _rotated_by(self, name: str) -> str:
        """Return the key, with its value, that makes the layer `name` of the pattern rotate queries and keys."""
        mixer = mixer_of(name, self.mixer)
        if self.position == "rotary" and "position" in mixer.model_keys:
            return "position: rotary"
        if name != MIXER:
            return f"pattern: {name}"
        return f"mixer.memory: {mixer.memory}" if isinstance(mixer, MemoryMixer) else "mixer.rotary: true"

    @model_validator(mode="after")
    def _mixer_is_used(self) -> "ModelConfig":
        if isinstance(self.mixer, ModuleMixer) and not self.mixer.module:
            raise ValueError("mixer.module: the class is missing; write its dotted path, e.g. my_mixers.Mixer")
        if MIXER not in self.layer_names and "mixer" in self.model_fields_set:
            beyond = " (only names after the last layer are mixer)" if MIXER in self.pattern else ""
            better = ", ".join((*self.pattern[: max(0, self.layers - 1)], MIXER))
            raise ValueError(
                f"pattern: no layer is named mixer{beyond}, so that model.mixer would change nothing; write e.g. "
                f"[{better}], or leave model.mixer out"
            )
        return self

    @property
    def head_dim(self) -> int:
        """K = V, the width of one head."""
        return self.dim // self.heads

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Return [layers]: the name of each layer in the pattern."""
        return cycled(self.pattern, self.layers)

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """Return [layers]: the mixer of each layer."""
        return tuple(mixer_of(name, self.mixer) for name in self.layer_names)

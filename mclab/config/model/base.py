"""The interface that the config of every mixer has for the language model."""

from typing import ClassVar, Protocol, Self

from mclab.config.strict import Strict


class Around(Protocol):
    """The keys of the model that a mixer's size depends on."""

    @property
    def dim(self) -> int: ...

    @property
    def heads(self) -> int: ...

    @property
    def conv(self) -> int: ...


class MixerConfig(Strict):
    """Base of the configs of mixers. A new mixer needs a file with its class, and a line in `mixers.Mixer`.

    A mixer other than a memory also has methods for its size: `parameters(model, length)` is the number of parameters,
    and `state(model, length)` is the number of floats that are kept of a sequence, (fixed, cached). Unknown numbers are
    `None`. Warnings about its keys are in `mclab.config.warnings`.
    """

    name: str
    #: The key that N sets in the short form `name/N` of the mixer.
    number: ClassVar[str | None] = None

    @property
    def model_keys(self) -> frozenset[str]:
        """Those of the model's keys `heads`, `conv` and `position` that have an effect on this mixer."""
        return frozenset({"heads", "conv", "position"})

    def rotates(self, position: str) -> bool:
        """Return whether queries and keys are rotated in a model with this position."""
        return position == "rotary" and "position" in self.model_keys

    @property
    def inert(self) -> frozenset[str]:
        """The keys of this mixer that have no effect, given its other keys."""
        return frozenset()

    @property
    def parts(self) -> frozenset[str]:
        """The names of the parts of the code whose formulas the mixer uses. For versions: `mclab.config.versions`."""
        return frozenset({f"mixer.{self.name}"})

    def canonical(self) -> Self:
        """Return the canonical form of this mixer: keys without effect have their baselines."""
        return self

    def fitted(self, length: int) -> Self:
        """This mixer for sequences of `length` tokens: a key that is limited by the length has its effective value."""
        return self

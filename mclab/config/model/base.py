"""The interface between the config of a mixer and the language model."""

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
    """The base class of the configs of mixers. A new mixer needs a file with its class, and a line in `mixers.Mixer`.

    A mixer that is not a memory also has two methods for its size: `parameters(model, length)` returns the number of
    parameters, and `state(model, length)` the number of floats that are kept of a sequence, (fixed, cached). An unknown
    number is `None`. Warnings about its keys are in `mclab.config.warnings`.
    """

    name: str
    #: The key that N sets in the short form `name/N`.
    number: ClassVar[str | None] = None

    @property
    def model_keys(self) -> frozenset[str]:
        """The keys among the model's `heads`, `conv` and `position` that have an effect on this mixer."""
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
        """The names of the parts of the code whose formulas the mixer uses (see `mclab.config.versions`)."""
        return frozenset({f"mixer.{self.name}"})

    def canonical(self) -> Self:
        """Return the canonical form of this mixer, in which keys without effect have their baselines."""
        return self

    def fitted(self, length: int) -> Self:
        """Return this mixer for sequences of `length` tokens: keys that the length limits have the limited values."""
        return self

"""What the language model around them asks of every mixer's keys."""

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
    """Base of the mixers. A new one is a file with its class and a line in `mixers.Mixer`.

    A mixer other than a memory also says its size: `parameters(model, length)`, and `state(model, length)`, the floats
    kept of a sequence, fixed and cached; `None` where that is not known. Warnings about its keys are in
    `mclab.config.warnings`.
    """

    name: str
    #: The key whose value is N in the short form `name/N`.
    number: ClassVar[str | None] = None

    @property
    def model_keys(self) -> frozenset[str]:
        """Which of the model's keys heads, conv and position change this mixer."""
        return frozenset({"heads", "conv", "position"})

    def rotates(self, position: str) -> bool:
        """Whether queries and keys are rotated in a model with this position."""
        return position == "rotary" and "position" in self.model_keys

    @property
    def inert(self) -> frozenset[str]:
        """The keys that change nothing, given the others."""
        return frozenset()

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the code whose formulas it uses, each with a version: see `mclab.config.versions`."""
        return frozenset({f"mixer.{self.name}"})

    def canonical(self) -> Self:
        """The one way of writing this mixer: keys without effect at their baselines."""
        return self

    def fitted(self, length: int) -> Self:
        """This mixer on sequences of `length` tokens: keys that these bound have the value that counts."""
        return self

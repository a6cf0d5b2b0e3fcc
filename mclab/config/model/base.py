"""What the language model around them asks of every mixer's keys."""

from collections.abc import Iterator
from typing import ClassVar, Protocol, Self

from mclab.config.lengths import Lengths
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

    A mixer other than a memory also says its size: `parameters(model, length)`, trained numbers, and
    `state(model, length)`, floats that a sequence leaves behind, fixed and cached; `None` where nobody can know.
    """

    name: str
    #: The key that N gives in the word `name/N`.
    number: ClassVar[str | None] = None

    @property
    def obeys(self) -> frozenset[str]:
        """Which of the model's keys heads, conv and position change it; conv and position hold where it is silent."""
        return frozenset({"heads", "conv", "position"})

    def turns(self, position: str) -> bool:
        """Whether queries and keys are rotated in a model with this position."""
        return position == "rotary" and "position" in self.obeys

    @property
    def inert(self) -> frozenset[str]:
        """The keys that change nothing beside the others."""
        return frozenset()

    @property
    def parts(self) -> frozenset[str]:
        """What it is made of, as far as it has formulas of its own that may change: see `mclab.config.versions`."""
        return frozenset({f"mixer.{self.name}"})

    def canonical(self) -> Self:
        """The one mixer that stands for every mixer which does the same: inert keys at their baselines."""
        return self

    def fitted(self, length: int) -> Self:
        """This mixer on sequences of `length` tokens: a key that they bound has the value that then counts."""
        return self

    def oddities(self, lengths: Lengths) -> Iterator[str]:
        """Harmless settings that may not be meant on sequences of these lengths, a line each that begins with the
        key."""
        return iter(())


def taps_beyond(key: str, taps: int, lengths: Lengths) -> Iterator[str]:
    """Of a convolution with more taps than there are tokens: all of them start smaller, the more there are."""
    if taps > lengths.longest:
        yield (
            f"{key}: {taps} taps are above {lengths.most}: the rest is never used, but counts in what the others "
            f"start from (1 / sqrt({taps}))"
        )

"""A fixed map that is learned into the weights: its keys, its rules, and the number of different sequences."""

from math import isqrt
from typing import Literal, Self

from pydantic import Field, model_validator

from mclab.config.task.base import MANY, TaskConfig


class FactsTask(TaskConfig):
    """A fixed random map from keys of two tokens to values; a sequence asks for values (MAD's memorisation task).

    No sequence shows a value, so the model can know the right ones only from training. The map depends on the seed, and
    is the same in train, valid and test. No single token of a key determines its value.
    """

    name: Literal["facts"] = "facts"
    vocab: int = Field(
        64, ge=4, le=2**20, description="tokens: two alphabets of ceil(sqrt(facts)) for keys, then values"
    )
    length: int = Field(
        64, ge=2, le=2**16, description="number of tokens in a sequence; even, because each key has two tokens"
    )
    facts: int = Field(256, ge=2, le=2**24, description="number of keys in the map, each with its value")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.length % 2:
            raise ValueError(f"length: facts needs an even length, got {self.length}; take {self.length + 1}")
        if self.values < 2:
            most = ((self.vocab - 2) // 2) ** 2
            raise ValueError(
                f"facts: {self.facts} keys need {2 * self.base} tokens and two values need 2 more, but vocab is "
                f"{self.vocab}; take vocab {2 * self.base + 2} or at most {most} facts"
            )
        return self

    @property
    def base(self) -> int:
        """The number of tokens in each of the two alphabets."""
        return isqrt(self.facts - 1) + 1

    @property
    def values(self) -> int:
        """The number of different values."""
        return self.vocab - 2 * self.base

    @property
    def slices(self) -> tuple[str, ...]:
        """The single slice, named by the number of facts."""
        return (f"facts={self.facts}",)

    def space(self) -> int:
        """Return the number of different sequences of keys, at most 2**64."""
        asked = self.length // 2
        return MANY if asked * (self.facts.bit_length() - 1) >= 64 else min(MANY, self.facts**asked)

    @property
    def keys(self) -> int:
        """0, since the answers cannot be copied from the sequence."""
        return 0

    @property
    def questions(self) -> int:
        """The number of scored answers in a sequence: the value of every key."""
        return self.length // 2

"""Associative recall: its keys and rules, and how many different sequences it holds."""

from functools import cache
from math import comb, perm
from typing import Literal

from pydantic import Field, model_validator

from mclab.config.task.base import MANY, TaskConfig


class ArTask(TaskConfig):
    """Associative recall: key value key value ... separator key; the model must then give the value of the last key.

    Keys are drawn with replacement. Within a sequence, a key always has the same value, and different keys have
    different values. All keys that occur are asked with equal probability.
    """

    name: Literal["ar"] = "ar"
    vocab: int = Field(
        20, ge=4, le=2**20, description="tokens: 0 separator, keys 1 to vocab/2 - 1, values vocab/2 to vocab - 1"
    )
    length: int = Field(40, ge=4, le=2**16, description="tokens in a sequence; even, (length - 2) / 2 pairs")
    loss: Literal["all", "answer"] = Field(
        "all", description="train on every next token, the answer included, or on the answer only; tests: answer"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ArTask":
        if self.length % 2:
            raise ValueError(f"length: ar needs an even length, got {self.length}; take {self.length + 1}")
        return self

    def as_tested(self) -> "ArTask":
        """Tests score the answer alone, whatever the training does."""
        return self.model_copy(update={"loss": "answer"})

    @property
    def pairs(self) -> int:
        """Key-value pairs in a sequence, repeated ones included."""
        return (self.length - 2) // 2

    @property
    def keys(self) -> int:
        """Different keys that a sequence may hold."""
        return min(self.pairs, self.vocab // 2 - 1)

    @property
    def slices(self) -> tuple[str, ...]:
        """The single slice, named by the number of pairs."""
        return (f"pairs={self.pairs}",)

    def space(self) -> int:
        """Return how many different sequences there are; 2**64 where there are more."""
        return _space(self.vocab // 2 - 1, self.vocab - self.vocab // 2, self.pairs)


@cache
def _space(keys: int, values: int, pairs: int) -> int:
    """Return the number of different sequences, at most 2**64: a sum over the number d of different keys. For each d it
    counts the choices of the keys, their arrangements in the pairs, their values, and the key that is asked.
    """
    if pairs * (keys.bit_length() - 1) >= 64:
        return MANY
    total = 0
    for d in range(1, min(keys, pairs) + 1):
        onto = sum((-1) ** (d - j) * comb(d, j) * j**pairs for j in range(1, d + 1))
        total += comb(keys, d) * int(onto) * perm(values, d) * d
    return min(total, MANY)

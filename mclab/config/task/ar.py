"""Associative recall: its keys, its rules, and the number of different sequences."""

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
    length: int = Field(40, ge=4, le=2**16, description="number of tokens in a sequence; even; (length - 2) / 2 pairs")
    loss: Literal["all", "answer"] = Field(
        "all", description="all: train on every next token, also the answer; answer: on the answer only, as tests do"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ArTask":
        if self.length % 2:
            raise ValueError(f"length: ar needs an even length, got {self.length}; take {self.length + 1}")
        return self

    def as_tested(self) -> "ArTask":
        """Return the task for tests, which score only the answer, whatever training scores."""
        return self.model_copy(update={"loss": "answer"})

    @property
    def pairs(self) -> int:
        """The number of key-value pairs in a sequence; a repeated pair counts each time."""
        return (self.length - 2) // 2

    @property
    def keys(self) -> int:
        """The largest number of different keys in a sequence."""
        return min(self.pairs, self.vocab // 2 - 1)

    @property
    def slices(self) -> tuple[str, ...]:
        """The single slice, named by the number of pairs."""
        return (f"pairs={self.pairs}",)

    def space(self) -> int:
        """Return the number of different sequences, at most 2**64."""
        return _space(self.vocab // 2 - 1, self.vocab - self.vocab // 2, self.pairs)


@cache
def _space(keys: int, values: int, pairs: int) -> int:
    """Return the number of different sequences, at most 2**64, as a sum over the number d of different keys.

    A term of the sum is the number of choices of the keys, times their arrangements in the pairs, times choices of
    their values, times the choices of the asked key.
    """
    if pairs * (keys.bit_length() - 1) >= 64:
        return MANY
    total = 0
    for d in range(1, min(keys, pairs) + 1):
        onto = sum((-1) ** (d - j) * comb(d, j) * j**pairs for j in range(1, d + 1))
        total += comb(keys, d) * int(onto) * perm(values, d) * d
    return min(total, MANY)

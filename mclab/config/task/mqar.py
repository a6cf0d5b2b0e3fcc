"""Multi-query associative recall: its keys, its rules, and the number of different sequences."""

from math import prod
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mclab.config.strict import Each, IntMix
from mclab.config.task.base import TaskConfig, arrangements

Filler = Literal["zero", "random"]
Spread = Literal["power", "uniform"]


class MqarTask(TaskConfig):
    """Multi-query associative recall (Zoology, arXiv 2312.04927): pairs first, then each key is queried once."""

    name: Literal["mqar"] = "mqar"
    vocab: int = Field(
        64, ge=4, le=2**20, description="tokens: 0 filler, keys 1 to vocab/2 - 1, values vocab/2 to vocab - 1"
    )
    length: int = Field(64, ge=4, le=2**20, description="number of tokens in a sequence; even")
    pairs: Annotated[IntMix, Each(1, 2**18)] = Field(
        (4, 8, 16),
        description="number of key-value pairs; with a list, each sequence draws one value; each value is a slice",
    )
    filler: Filler = Field("zero", description="what is between the queries: token 0 (zero), or random tokens")
    distractors: bool = Field(
        False, description="random filler may repeat a key of the sequence (as the original does)"
    )
    spread: Spread = Field(
        "power", description="where queries are: near the pairs (power law), or anywhere with equal probability"
    )

    @model_validator(mode="after")
    def _fits(self) -> "MqarTask":
        if self.length % 2:
            raise ValueError(f"length: mqar needs an even length, got {self.length}; take {self.length + 1}")
        most = self.pairs[-1]
        if 4 * most > self.length:
            raise ValueError(
                f"pairs: {most} pairs and their queries need 4 * {most} = {4 * most} tokens, but length is "
                f"{self.length}; take length {4 * most} or at most {self.length // 4} pairs"
            )
        if most > self.vocab // 2 - 1:
            raise ValueError(
                f"pairs: {most} pairs need {most} different keys, but vocab {self.vocab} has only "
                f"{self.vocab // 2 - 1}; take vocab {2 * (most + 1)} or at most {self.vocab // 2 - 1} pairs"
            )
        if self.distractors and self.filler == "zero":
            raise ValueError(
                "distractors: true needs filler random, but filler is zero; take filler random, or distractors false"
            )
        return self

    @property
    def keys(self) -> int:
        """The largest number of different keys in a sequence."""
        return self.pairs[-1]

    @property
    def questions(self) -> int:
        """The number of scored answers in a sequence of the smallest slice, where every key is asked once."""
        return self.pairs[0]

    @property
    def slices(self) -> tuple[str, ...]:
        """The names of the slices, one for each number of pairs: `pairs=16`."""
        return tuple(f"pairs={p}" for p in self.pairs)

    def only(self, slice_name: str) -> "MqarTask":
        """Return this task with one slice alone. Raises `KeyError` for a name that is not in `slices`."""
        pairs = dict(zip(self.slices, self.pairs, strict=True))[slice_name]
        return self.model_copy(update={"pairs": (pairs,)})

    def space(self) -> int:
        """Return how many different sequences the smallest slice has: keys x values x slots, filler not counted."""
        keys, values = self.vocab // 2 - 1, self.vocab - self.vocab // 2
        kinds = ([(keys, p), (values, p), ((self.length - 2 * p) // 2, p)] for p in self.pairs)
        return min(prod(arrangements(*each) for each in kind) for kind in kinds)

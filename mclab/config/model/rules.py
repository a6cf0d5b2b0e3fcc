"""What is known of each update rule without running it, one row a memory; everything outside `memories/` reads it here.

A new memory is a row in `RULES` and a file in `mclab/memories/`: `gated_delta.py` with the class `GatedDeltaMemory`.
The formulas stand in docs/equations.md#memories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from mclab.config.one_of import OneOf

Objective = Literal["dot", "l2"]
Shape = Literal["matrix", "vector"]

#: Hidden width of a deep memory in units of the head's.
EXPANSION = 4


@dataclass(frozen=True)
class Rule:
    """Facts of an update rule. With nothing said it adds v k^T to a matrix of each head, from zero, and learns nothing.

    K is the width of a head, the width of its keys and of its values.
    """

    #: Raise it when the formula changes: the same keys then give other numbers.
    version: int = 1
    #: What a head's memory is where it is not deep: a matrix K x K, or a vector of K.
    shape: Shape = "matrix"
    #: Whether `depth` makes it a stack of matrices with an activation between them; W^0 of such a one is learned.
    may_be_deep: bool = False
    #: The loss whose gradient is written, -<M(k), v> or |M(k) - v|^2; None where the rule takes no gradient.
    objective: Objective | None = None
    #: Whether it forgets, by its own rate or by one that each token gives.
    decays: bool = False
    #: Whether what is written is a running sum of gradients, which the next write needs.
    momentum: bool = False
    #: Whether a write first takes from what its key held, by the exact rule and not by a gradient in chunks.
    erases: bool = False
    #: Whether the weights are made of what is stored (logits), and so have to be made anew for every token.
    formed: bool = False
    #: Earlier tokens whose keys and values the next write needs.
    lookback: int = 0
    #: Whether queries and keys are rotated whatever `model.position` is.
    rotary: bool = False
    #: Rates that each token gives a head: a linear map of the layer's input with a bias.
    rates: int = 0
    #: Rates that each token gives a channel: a map of low rank with a bias.
    channel_rates: int = 0
    #: Trained numbers of a head that no token changes.
    constants: int = 0
    #: Trained numbers of a channel that no token changes.
    channel_constants: int = 0

    @property
    def descends(self) -> bool:
        """Whether it descends a loss, in chunks of `chunk` tokens; others write without looking at M(k), or exactly."""
        return self.objective is not None

    @property
    def adds(self) -> bool:
        """Whether it only ever adds what a token brings, so that a read needs keys and values and no matrix."""
        return not (self.descends or self.decays or self.erases)

    def parameters(self, dim: int, heads: int) -> int:
        """Trained numbers of one matrix or vector a head in a model of width `dim`."""
        of_heads = self.rates * (dim + 1) + self.constants
        of_channels = self.channel_rates * (2 * low_rank(dim) + 1) + self.channel_constants
        return heads * of_heads + dim * of_channels

    def size(self, head: int, depth: int) -> int:
        """Numbers in the memory of a head of this width, with so many matrices."""
        return head if self.shape == "vector" else sum(out * into for out, into in layers(head, depth))

    def inert(self, depth: int) -> frozenset[str]:
        """The keys that change nothing. One matrix has no norm and starts from zero, where forgetting leads too."""
        dead = set[str]()
        if not self.may_be_deep:
            dead |= {"depth"}
        if not self.descends:
            dead |= {"chunk", "max_lr"}
        if not (self.may_be_deep and depth > 1):
            dead |= {"memory_norm", "decay_to"}
        if not self.decays:
            dead |= {"decay_to"}
        return frozenset(dead)


def low_rank(dim: int) -> int:
    """Rank of the maps that make rates of each channel."""
    return max(1, dim // 4)


def layers(head: int, depth: int) -> list[tuple[int, int]]:
    """Width out of and into each matrix of a memory of so many."""
    return [(out, into) for into, out in pairwise([head, *[EXPANSION * head] * (depth - 1), head])]


#: By the word that stands under `model.mixer.memory`.
RULES: dict[str, Rule] = {
    "linear": Rule(),
    "retnet": Rule(decays=True, rotary=True),
    "swla": Rule(decays=True, lookback=1, rates=3),
    "dla": Rule(may_be_deep=True, objective="dot", rates=1),
    "titans": Rule(may_be_deep=True, objective="l2", decays=True, momentum=True, rates=3),
    "vector": Rule(shape="vector", channel_constants=1),
    "delta": Rule(erases=True, rates=1),
    "gated_delta": Rule(erases=True, decays=True, rates=2, constants=1),
    "rwkv7": Rule(version=2, erases=True, decays=True, channel_rates=2, channel_constants=2),
    "mamba2": Rule(decays=True, rates=1, constants=2),
    "memora": Rule(objective="l2", decays=True, formed=True, rates=2),
}

Memory = Annotated[str, OneOf(RULES, or_path=True)]

#: What is taken to hold of a rule of the user's own, whose code alone knows.
OWN = Rule(decays=True)


def rule_of(word: str) -> Rule:
    """The facts of a memory by its word, or of one of the user's own by its dotted path."""
    return RULES.get(word, OWN)


def those(has: Callable[[Rule], bool]) -> str:
    """The memories whose rule has something, as a key's description begins: `dla, titans`."""
    return ", ".join(word for word, rule in RULES.items() if has(rule))

"""What is known of each update rule without running it, one row per memory; code outside `memories/` reads it here.

A new memory is a row in `RULES` and a file in `mclab/memories/`: `gated_delta.py` with the class `GatedDeltaMemory`.
The formulas are in docs/equations.md#memories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from mclab.config.fields import OneOf

Objective = Literal["dot", "l2"]
Shape = Literal["matrix", "vector"]

#: Hidden width of a deep memory in units of the head's.
EXPANSION = 4


@dataclass(frozen=True)
class Rule:
    """Facts of an update rule. By default it adds v k^T to a matrix of each head, from zero, and has no parameters.

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
    #: Whether it decays, by a fixed rate or by one that each token gives.
    decays: bool = False
    #: Whether it writes a running sum of gradients, which the next write needs.
    momentum: bool = False
    #: Whether a write first removes what its key held, by the exact rule and not by a gradient in chunks.
    erases: bool = False
    #: Whether the weights are a function of what is stored (logits), which has to be computed again for every token.
    formed: bool = False
    #: Number of earlier tokens whose keys and values the next write needs.
    lookback: int = 0
    #: Whether queries and keys are rotated whatever `model.position` is.
    rotary: bool = False
    #: Rates per head and token: a linear map of the layer's input with a bias.
    rates: int = 0
    #: Rates per channel and token: a map of low rank with a bias.
    channel_rates: int = 0
    #: Parameters per head that do not depend on the token.
    constants: int = 0
    #: Parameters per channel that do not depend on the token.
    channel_constants: int = 0

    @property
    def descends(self) -> bool:
        """Whether it descends a loss, in chunks of `chunk` tokens; other rules do not read M(k), or solve exactly."""
        return self.objective is not None

    @property
    def adds(self) -> bool:
        """Whether it only adds v k^T, so that a read can be computed from keys and values without a matrix."""
        return not (self.descends or self.decays or self.erases)

    def parameters(self, dim: int, heads: int) -> int:
        """Parameters of the rule in a model of width `dim`, with one matrix or vector per head."""
        of_heads = self.rates * (dim + 1) + self.constants
        of_channels = self.channel_rates * (2 * low_rank(dim) + 1) + self.channel_constants
        return heads * of_heads + dim * of_channels

    def size(self, head: int, depth: int) -> int:
        """Entries of the memory of a head of this width, with `depth` matrices."""
        return head if self.shape == "vector" else sum(out * into for out, into in layers(head, depth))

    def inert(self, depth: int) -> frozenset[str]:
        """The keys that change nothing. One matrix has no norm, starts from zero and decays to zero."""
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
    """Rank of the maps that give rates per channel."""
    return max(1, dim // 4)


def layers(head: int, depth: int) -> list[tuple[int, int]]:
    """Output and input width of each matrix of a memory with `depth` of them."""
    return [(out, into) for into, out in pairwise([head, *[EXPANSION * head] * (depth - 1), head])]


#: By the value of `model.mixer.memory`.
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

#: What is assumed of a rule of the user's own.
OWN = Rule(decays=True)


def rule_of(word: str) -> Rule:
    """The facts of a memory by its name, or of one of the user's own by its dotted path."""
    return RULES.get(word, OWN)


def names_of(has: Callable[[Rule], bool]) -> str:
    """The memories whose rule fulfils a condition, as the description of a key begins: `dla, titans`."""
    return ", ".join(word for word, rule in RULES.items() if has(rule))

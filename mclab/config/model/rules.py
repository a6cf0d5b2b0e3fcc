"""The properties of each update rule that are known without running it, for all code outside `memories/`.

A new memory needs a line in `RULES` and a file in `mclab/memories/`, such as `gated_delta.py` with the class
`GatedDeltaMemory`. The formulas are in docs/equations.md#memories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from mclab.config.fields import OneOf

Objective = Literal["dot", "l2"]
Shape = Literal["matrix", "vector"]

#: Hidden width of a deep memory in units of the head width.
EXPANSION = 4


@dataclass(frozen=True)
class Rule:
    """The properties of an update rule. By default a rule adds v k^T to one matrix per head, and has no parameters.

    The matrix starts at zero. K is the width of a head, and so of its keys and values.
    """

    #: Raise this if the formula changes, since the same config then gives other results.
    version: int = 1
    #: The memory of a head if it is not deep: a matrix [K, K] or a vector [K].
    shape: Shape = "matrix"
    #: Whether `depth` > 1 makes the memory a stack of matrices with activations between them; its W^0 is learned.
    may_be_deep: bool = False
    #: The loss whose gradient is written: -<M(k), v> (dot) or |M(k) - v|^2 (l2); `None` if the rule uses no gradient.
    objective: Objective | None = None
    #: Whether the memory decays, at a fixed rate or at a rate computed from each token.
    decays: bool = False
    #: Whether it writes a running sum of gradients, which is then part of the state.
    momentum: bool = False
    #: Whether a write first removes, exactly, what is stored under its key. (Gradient descent in chunks does not.)
    erases: bool = False
    #: Whether the state holds logits, from which the memory's weights are computed anew for every token.
    formed: bool = False
    #: The number of earlier tokens whose keys and values the next write needs.
    lookback: int = 0
    #: Whether queries and keys are always rotated, with any `model.position`.
    rotary: bool = False
    #: Number of rates per head and token; each is a linear map of the layer's input with a bias.
    rates: int = 0
    #: The number of rates per channel and token; each is a low-rank map with a bias.
    channel_rates: int = 0
    #: Number of parameters per head that do not depend on the token.
    constants: int = 0
    #: Number of parameters per channel that do not depend on the token.
    channel_constants: int = 0

    @property
    def descends(self) -> bool:
        """True if a write is a step of gradient descent on a loss, taken in chunks of `chunk` tokens.

        Other rules do not read M(k) for a write, or compute the result exactly.
        """
        return self.objective is not None

    @property
    def adds(self) -> bool:
        """True if the rule only adds v k^T, so that a read can be computed from keys and values without a matrix."""
        return not (self.descends or self.decays or self.erases)

    def parameters(self, dim: int, heads: int) -> int:
        """Return the number of the rule's parameters in a model of width `dim`, with one matrix or vector per head."""
        of_heads = self.rates * (dim + 1) + self.constants
        of_channels = self.channel_rates * (2 * low_rank(dim) + 1) + self.channel_constants
        return heads * of_heads + dim * of_channels

    def size(self, head: int, depth: int) -> int:
        """Return the number of entries of one head's memory, for a head of width `head` and `depth` matrices."""
        return head if self.shape == "vector" else sum(out * into for out, into in layers(head, depth))

    def inert(self, depth: int) -> frozenset[str]:
        """Return the keys that have no effect on this rule at this `depth`.

        For example, a memory of one matrix has no norm, starts at zero and decays to zero.
        """
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
    """Return the rank of the maps that give rates per channel."""
    return max(1, dim // 4)


def layers(head: int, depth: int) -> list[tuple[int, int]]:
    """Return [depth]: (output width, input width) of each matrix of a memory with `depth` matrices."""
    return [(out, into) for into, out in pairwise([head, *[EXPANSION * head] * (depth - 1), head])]


#: The properties of each rule, by the value of `model.mixer.memory`.
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

#: The properties that are assumed for the user's own rules.
OWN = Rule(decays=True)


def rule_of(word: str) -> Rule:
    """Return the properties of a memory's rule.

    `word` is a name in `RULES`, or the dotted path of the user's own rule.
    """
    return RULES.get(word, OWN)


def names_of(has: Callable[[Rule], bool]) -> str:
    """Return the names of the memories whose rule fulfils the condition `has`, as text: `dla, titans`."""
    return ", ".join(word for word, rule in RULES.items() if has(rule))

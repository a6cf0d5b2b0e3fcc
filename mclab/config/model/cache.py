"""The axes of a memory and its cache: their values, the lengths of segments, and which axes have no effect."""

from functools import cache
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

Segmentation = Literal["constant", "log", "listed"]
DecayTo = Literal["init", "zero"]
MemoryNorm = Literal["rms", "soft", "none", "residual"]
Aggregate = Literal["none", "residual", "grm", "soup", "ssc"]
Gate = Literal["context", "input", "none"]
GateActivation = Literal["softmax", "sigmoid", "identity"]
Connector = Literal["own", "shared"]
Init = Literal["restart", "checkpoint"]
Pool = Literal["mean", "sum"]
PoolOf = Literal["keys", "inputs"]
Route = Literal["annealed", "explore", "straight_through", "hard"]
Hybrid = Literal["none", "mal", "mag"]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, int) else value


#: The number of tokens in each segment; the last number is used for all further segments
#: (docs/equations.md#listed-segments).
SegmentLengths = Annotated[tuple[Annotated[int, Field(ge=1, le=2**20)], ...], BeforeValidator(_as_tuple)]


def without_repeated_end(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return `lengths` with the last length only once at the end, since it is repeated anyway."""
    end = len(lengths)
    while end > 1 and lengths[end - 1] == lengths[end - 2]:
        end -= 1
    return lengths[:end]


def segments_in(lengths: tuple[int, ...], length: int) -> int:
    """Return the number of segments with these `lengths` in a sequence of `length` tokens."""
    ends = list(accumulate(lengths))
    if length > ends[-1]:
        return len(ends) - (ends[-1] - length) // lengths[-1]
    return 1 + sum(end < length for end in ends)


@cache
def inert_axes(aggregate: str, gate: str, segmentation: str, trained_scores: bool, activation: str) -> frozenset[str]:
    """Return the axes that have no effect, given the values of the other axes.

    `trained_scores` says whether context scores get a gradient.
    """
    dead = set[str]()
    if aggregate == "none":
        dead |= {"segment", "segment_lengths", "segmentation", "init"}
    if not trained_scores:
        dead |= {"connector", "pool", "scale"}
    if aggregate != "ssc":
        dead |= {"k", "renormalise", "route"}
    elif gate == "none" or activation != "softmax":
        dead |= {"renormalise"}  # the weight of a memory does not depend on the others
    if gate == "none":
        dead |= {"gate_activation"}
    if gate in ("input", "none") and aggregate != "ssc":
        dead |= {"pool_of"}
    if aggregate == "ssc" and segmentation != "constant":
        dead -= {"pool"}  # a sum favours long segments; with equal lengths, sum and mean choose the same
    return frozenset(dead)

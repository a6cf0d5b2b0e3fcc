"""Which keys of a cache change nothing, given the others."""

from functools import cache


@cache
def inert_axes(aggregate: str, gate: str, segmentation: str, taught: bool, activation: str) -> frozenset[str]:
    """By the words of a cache, and whether its scores get a gradient."""
    dead = set[str]()
    if aggregate == "none":
        dead |= {"segment", "segment_lengths", "segmentation", "init"}
    if not taught:
        dead |= {"connector", "pool", "scale"}
    if aggregate != "ssc":
        dead |= {"k", "renormalise", "route"}
    elif gate == "none" or activation != "softmax":
        dead |= {"renormalise"}  # what each memory weighs does not depend on the others
    if gate == "none":
        dead |= {"gate_activation"}
    if gate in ("input", "none") and aggregate != "ssc":
        dead |= {"pool_of"}
    if aggregate == "ssc" and segmentation != "constant":
        dead -= {"pool"}  # the sum favours large ones; of segments that are all alike both choose the same
    return frozenset(dead)

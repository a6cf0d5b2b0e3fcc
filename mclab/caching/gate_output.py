"""What the gate gives an aggregation: logits, scores, masks, and the weights gamma that follow from them.

Made by caching/layer.py, for one token by caching/decoding.py. Shapes as in caching/gate.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class RouteStep(NamedTuple):
    """What a training step sets for the routes of ssc (train/routing.py), a function of seed and step alone."""

    early: bool
    """Whether `route: annealed` still reads all."""
    draws_GT: Tensor | None
    """[G, T] int32, below 2^31: a random number of every token and head, for the routes that draw; else None."""


class GateOutput(NamedTuple):
    """Tensors that a gate does not make are None; so is `step` outside of training."""

    visible_TN: Tensor
    """True for every memory that t sees."""
    own_TN: Tensor
    """True in the column of t's online memory."""
    past_TN: Tensor
    """True for the kept memories that t sees."""
    logits_GTN: Tensor | None
    """Of the gate; None where `gate: none`."""
    scores_GTN: Tensor | None
    """The context scores; the logits are the same tensor where `gate: context`."""
    activation: Callable[[Tensor, Tensor], Tensor]
    """From logits, and which of their columns count, to weights (caching/activation.py)."""
    k: int
    renormalise: bool
    route: str
    step: RouteStep | None

    def weights(self) -> Tensor | None:
        """gamma over everything that t sees, [G, T, N]; None where every weight is 1."""
        return None if self.logits_GTN is None else self.activation(self.logits_GTN, self.visible_TN)

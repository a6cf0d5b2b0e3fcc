"""The gate's output, as an aggregation gets it: logits, scores, masks, and the weights gamma computed from them.

caching/layer.py makes it for a sequence, caching/decoding.py for one token. Shapes as in caching/gate.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class RouteStep(NamedTuple):
    """Settings of one training step for the routes of ssc (train/routing.py). They depend only on seed and step."""

    early: bool
    """True if `route: annealed` still reads all memories that a token sees."""
    draws_GT: Tensor | None
    """[G, T] int32, below 2^31: a random number for every token and head; `None` if the route does not draw."""


class GateOutput(NamedTuple):
    """The inputs of an aggregation.

    A tensor that the gate does not make is `None`; `step` is `None` outside of training.
    """

    visible_TN: Tensor
    """True for the memories that t sees."""
    own_TN: Tensor
    """True in the column of t's online memory."""
    past_TN: Tensor
    """True for the kept memories that t sees."""
    logits_GTN: Tensor | None
    """The gate's logits; `None` with `gate: none`."""
    scores_GTN: Tensor | None
    """The context scores; with `gate: context` the logits are the same tensor."""
    activation: Callable[[Tensor, Tensor], Tensor]
    """The function that turns logits, and a mask of the columns to use, into weights (caching/activation.py)."""
    k: int
    renormalise: bool
    route: str
    step: RouteStep | None

    def weights(self) -> Tensor | None:
        """Return gamma [G, T, N] over the memories that t sees; `None` if every weight is 1."""
        return None if self.logits_GTN is None else self.activation(self.logits_GTN, self.visible_TN)

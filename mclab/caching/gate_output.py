"""What an aggregation may look at beside the written memories. Shapes as in caching/gate.py."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class RouteStep(NamedTuple):
    """What a step of training tells a layer that chooses its memories, a function of the seed and the step alone."""

    early: bool
    """Whether `route: annealed` still reads all."""
    draws_GT: Tensor | None
    """For routes that draw a number below 2^31 for every token and head, int32."""


class GateOutput(NamedTuple):
    """Absent tensors are None; so is `step` outside of training."""

    visible_TN: Tensor
    own_TN: Tensor
    past_TN: Tensor
    """The kept memories that t sees, [T, N]."""
    logits_GTN: Tensor | None
    scores_GTN: Tensor | None
    activation: Callable[[Tensor, Tensor], Tensor]
    """From logits, and which of their columns count, to weights."""
    k: int
    renormalise: bool
    route: str
    step: RouteStep | None

    def weights(self) -> Tensor | None:
        """gamma over everything that t sees, [G, T, N]; None where each counts once."""
        return None if self.logits_GTN is None else self.activation(self.logits_GTN, self.visible_TN)

"""What an aggregation may look at beside the written memories. Shapes as in caching/gate.py."""

from typing import NamedTuple

import torch
from torch import Tensor


class Step(NamedTuple):
    """What a step of training tells a layer that chooses its memories, a function of the seed and the step alone."""

    early: bool
    """Whether `route: annealed` still reads all."""
    draws_GT: Tensor | None
    """For routes that draw a number below 2^31 for every token and head, int32."""


class View(NamedTuple):
    """Absent tensors are None; so is `step` outside of training."""

    visible_TN: Tensor
    own_TN: Tensor
    logits_GTN: Tensor | None
    scores_GTN: Tensor | None
    k: int
    renormalise: bool
    route: str
    step: Step | None

    def past(self) -> Tensor:
        """The kept memories that t sees, [T, N]."""
        return self.visible_TN & ~self.own_TN

    def weights(self) -> Tensor | None:
        """gamma over everything that t sees, [G, T, N]; None where each counts once."""
        return None if self.logits_GTN is None else softmax(self.logits_GTN, self.visible_TN)


def softmax(logits_GTN: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the columns that are visible, zero elsewhere."""
    return logits_GTN.masked_fill(~visible, -torch.inf).softmax(-1)

"""From a gate's logits to the weights gamma (docs/equations.md#activation). Shapes as in caching/gate.py."""

from collections.abc import Callable

import torch
from torch import Tensor


def softmax(logits: Tensor, visible: Tensor) -> Tensor:
    """Weights that are positive and share out 1 over the columns that are visible, zero elsewhere."""
    return logits.masked_fill(~visible, -torch.inf).softmax(-1)


def sigmoid(logits: Tensor, visible: Tensor) -> Tensor:
    """Each weight between 0 and 1 by its own logit alone."""
    return logits.sigmoid().masked_fill(~visible, 0.0)


def identity(logits: Tensor, visible: Tensor) -> Tensor:
    """The logit itself, of either sign and any size."""
    return logits.masked_fill(~visible, 0.0)


#: By the word that stands under `model.mixer.gate_activation`.
ACTIVATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "identity": identity,
}

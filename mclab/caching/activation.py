"""The gate's softmax and its alternatives: from logits to the weights gamma (docs/equations.md#activation).

Shapes: logits [G, T, N] and `visible` [T, N] (or as the logits) to gamma [G, T, N], as in caching/gate.py.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def softmax(logits: Tensor, visible: Tensor) -> Tensor:
    """Return gamma = softmax over the visible columns, zero elsewhere; each row sums to 1 (MC section 3.1)."""
    return logits.masked_fill(~visible, -torch.inf).softmax(-1)


def sigmoid(logits: Tensor, visible: Tensor) -> Tensor:
    """Return gamma = sigmoid of each visible logit separately, zero elsewhere."""
    return logits.sigmoid().masked_fill(~visible, 0.0)


def identity(logits: Tensor, visible: Tensor) -> Tensor:
    """Return gamma = each visible logit itself, of either sign and any size; zero elsewhere."""
    return logits.masked_fill(~visible, 0.0)


#: Activations by their name under `model.mixer.gate_activation`.
ACTIVATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "identity": identity,
}

"""How the memories that a token sees become one output (docs/equations.md#aggregation).

Shapes as in caching/gate.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.memories.base import Written


class View(NamedTuple):
    """What an aggregation may look at beside the written memories; absent tensors are None."""

    visible_TN: Tensor
    own_TN: Tensor
    logits_GTN: Tensor | None
    scores_GTN: Tensor | None
    k: int
    renormalise: bool


def residual(written: Written, q_GTK: Tensor, view: View) -> Tensor:
    """y_t = M_t^(s)(q_t) + sum_{i < s} M^(i)(q_t)."""
    return written.read(q_GTK, None)


def grm(written: Written, q_GTK: Tensor, view: View) -> Tensor:
    """Gated residual memory: y_t = gamma_t^(s) M_t^(s)(q_t) + sum_{i < s} gamma_t^(i) M^(i)(q_t)."""
    return written.read(q_GTK, _weights(view))


def soup(written: Written, q_GTK: Tensor, view: View) -> Tensor:
    """Memory soup: mix the weight matrices with gamma, then read the mixed memory once."""
    return written.read_mixed(q_GTK, _weights(view))


def ssc(written: Written, q_GTK: Tensor, view: View) -> Tensor:
    """Sparse selective caching: grm over the k kept memories of highest context score, and the online one.

    The selection carries no gradient, the weights do. Without `renormalise` the weights are those of the softmax over
    all visible memories.
    """
    assert view.scores_GTN is not None
    columns_GTJ = select(view.scores_GTN.detach(), view.visible_TN & ~view.own_TN, view.own_TN, view.k)
    return written.read_chosen(q_GTK, _chosen_weights(view, columns_GTJ).to(q_GTK.dtype), columns_GTJ)


def select(scores_GTN: Tensor, past_TN: Tensor, own_TN: Tensor, k: int) -> Tensor:
    """The columns of the k highest scores among the past of each token, its own where the past is shorter, and behind
    them its own: [G, T, J], J = k + 1, or every column where k exceeds them."""
    own_GT1 = own_TN.byte().argmax(-1, keepdim=True).expand(len(scores_GTN), -1, -1)
    masked = scores_GTN.masked_fill(~past_TN, -torch.inf)
    best_GTk = masked.topk(min(k, masked.shape[-1] - 1), dim=-1).indices
    past_GTk = past_TN.expand_as(masked).gather(-1, best_GTk)
    return torch.cat((torch.where(past_GTk, best_GTk, own_GT1), own_GT1), -1)


def _chosen_weights(view: View, columns_GTJ: Tensor) -> Tensor:
    """gamma in the columns that were chosen, zero where a column is named only to fill up: [G, T, J]."""
    chosen_GTJ = columns_GTJ != columns_GTJ[..., -1:]
    chosen_GTJ[..., -1] = True
    if view.logits_GTN is None:
        return chosen_GTJ
    if view.renormalise:
        return softmax(view.logits_GTN.gather(-1, columns_GTJ), chosen_GTJ)
    return softmax(view.logits_GTN, view.visible_TN).gather(-1, columns_GTJ).masked_fill(~chosen_GTJ, 0.0)


def _weights(view: View) -> Tensor | None:
    return None if view.logits_GTN is None else softmax(view.logits_GTN, view.visible_TN)


def softmax(logits_GTN: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the columns that are visible, zero elsewhere."""
    return logits_GTN.masked_fill(~visible, -torch.inf).softmax(-1)


AGGREGATES: dict[str, Callable[[Written, Tensor, View], Tensor]] = {
    "none": residual,  # over a single segment
    "residual": residual,
    "grm": grm,
    "soup": soup,
    "ssc": ssc,
}

"""How the memories that a token sees become one output (EQUATIONS 1). Shapes as in caching/gate.py."""

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
    chosen_GTN = select(view.scores_GTN.detach(), view.visible_TN & ~view.own_TN, view.k) | view.own_TN
    if view.logits_GTN is None:
        return written.read(q_GTK, chosen_GTN.to(q_GTK.dtype))
    if view.renormalise:
        return written.read(q_GTK, softmax(view.logits_GTN, chosen_GTN))
    return written.read(q_GTK, softmax(view.logits_GTN, view.visible_TN) * chosen_GTN)


def select(scores_GTN: Tensor, past_TN: Tensor, k: int) -> Tensor:
    """True for the k highest scores among the past of each token, all of it when k exceeds it: [G, T, N]."""
    masked = scores_GTN.masked_fill(~past_TN, -torch.inf)
    best = masked.topk(min(k, masked.shape[-1]), dim=-1).indices
    return torch.zeros_like(masked, dtype=torch.bool).scatter_(-1, best, True) & past_TN


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

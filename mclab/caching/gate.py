"""How much a token reads from each memory it sees (EQUATIONS 1, gate).

A gate gives logits [G, T, N] over segments (caching/segment.py); the softmax over what is visible, or over what SSC
selected, is taken by the aggregation. Shapes: G = R*B*H folded, T time padded to full segments, N segments, H heads.
"""

import math

import torch
from torch import Tensor, nn

from mclab.caching.pool import POOLS
from mclab.caching.segment import ConstantSegments
from mclab.layers import Normal, linear, parameter


def context_scores(u_GTK: Tensor, k_GTK: Tensor, segments: ConstantSegments, pool: str, scale: float | None) -> Tensor:
    """r_t^(i) = scale * <u_t, pool_i>; in t's own column the pool of its segment's keys up to and including t.

    `scale` None is sqrt(K) for the mean (unit keys average to short vectors) and 1 for the sum. Columns after t's own
    hold numbers without meaning: mask them.
    """
    kept_GNK, running_GNSK = POOLS[pool](k_GTK.unflatten(1, (-1, segments.segment)))
    online_GT1 = torch.linalg.vecdot(u_GTK, running_GNSK.flatten(1, 2)).unsqueeze(-1)
    kept_GTN = u_GTK @ kept_GNK.transpose(-1, -2)
    factor = scale if scale is not None else math.sqrt(k_GTK.shape[-1]) if pool == "mean" else 1.0
    return factor * torch.where(segments.own(k_GTK.device), online_GT1, kept_GTN)


class ContextGate(nn.Module):
    """Logits are the context scores: token and segment decide together."""

    needs_scores = True

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: ConstantSegments) -> Tensor | None:
        return scores_GTN


class InputGate(nn.Module):
    """Logits are a projection of x_t alone, one a segment, so they know positions and not contents."""

    needs_scores = False

    def __init__(self, replicas: int, width: int, heads: int, slots: int) -> None:
        super().__init__()
        self.heads = heads
        self.weight = parameter(replicas, width, heads * slots, init=Normal(1 / math.sqrt(width)))

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: ConstantSegments) -> Tensor | None:
        logits_RBHTN = linear(x_RBTD, self.weight).unflatten(-1, (self.heads, -1)).transpose(2, 3)
        trained = logits_RBHTN.shape[-1]
        # A sequence with more segments than trained reuses the last one's logit.
        columns = torch.arange(segments.count, device=x_RBTD.device).clamp(max=trained - 1)
        return logits_RBHTN.flatten(0, 2)[..., columns]


class NoGate(nn.Module):
    """Every visible memory counts once."""

    needs_scores = False

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: ConstantSegments) -> Tensor | None:
        return None


GATES: dict[str, type[nn.Module]] = {"context": ContextGate, "input": InputGate, "none": NoGate}

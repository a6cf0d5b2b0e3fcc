"""Compute how much a token reads from each memory: context scores and the gate's logits (docs/equations.md#gate).

A gate gives logits [G, T, N] over the N columns of caching/segment.py. The softmax, or another function of
caching/activation.py, turns the logits of the memories that are visible, or that SSC selected, into weights. Shapes: G
= R*B*H folded, T time padded to full blocks, N columns, H heads, K key width.
"""

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.caching.pool import POOLS
from mclab.caching.segment import Segments
from mclab.constants import counting, once
from mclab.kernels.scores import scores, segment_scores
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Normal, parameter


def context_scores(u_GTK: Tensor, pooled_GTK: Tensor, segments: Segments, pool: str, scale: float) -> Tensor:
    """Return the context scores r_t^(i) = scale * <u_t, pool_i> (MC eqs. 10, 16): [G, T, N].

    In t's own column the pool is over the tokens of t's segment up to and including t. `pooled_GTK` are the keys or the
    layer's inputs. Values in columns after t's own have no meaning: mask them.
    """
    S, kind = segments.segment, (u_GTK.dtype, u_GTK.device)
    own_TN, factors_TN = segments.own(u_GTK.device), _factors(segments, pool, scale, *kind)
    if segments.single:
        return scores(u_GTK, pooled_GTK, S, own_TN, segments.own_column(u_GTK.device).unsqueeze(-1), factors_TN)
    running_GT, whole_GTN = segment_scores(u_GTK, pooled_GTK, S)
    if len(segments.runs) < segments.count:  # the pool of a run starts at the run's first block
        running_GT = running_GT + (whole_GTN * _earlier_of_run(segments, *kind)).sum(-1)
    kept_GTN = F.pad(whole_GTN @ _held(segments, *kind), (0, 1))
    return torch.where(own_TN, running_GT.unsqueeze(-1), kept_GTN) * factors_TN


@once
def _earlier_of_run(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [T, N]: 1 for the blocks before t's block that t's online memory holds, else 0."""
    run_N, block_N = segments.run_of_block(device), counting(segments.count, device)
    earlier_NN = (run_N[:, None] == run_N) & (block_N[:, None] > block_N)
    return earlier_NN.to(dtype).unsqueeze(1).expand(-1, segments.segment, -1).flatten(0, 1)


@once
def _held(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [N, kept]: 1 if a kept memory holds a block, else 0."""
    return segments.holds(True, device).to(dtype).T.contiguous()


@once
def _factors(segments: Segments, pool: str, scale: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [T, columns]: the factors that turn products of u with sums of keys into scores.

    In t's own column the sum is over the tokens of its run up to t. In the other columns it is over the blocks of a
    kept memory; these blocks are full, because only the last block may be short and it is never read as a kept memory.
    In columns beyond the kept memories the factor has no meaning.
    """
    online_T = POOLS[pool](segments.written(device).to(dtype))
    kept_N = POOLS[pool]((segments.blocks_held(device) * segments.segment).to(dtype))
    wide_N = F.pad(kept_N, (0, segments.columns - len(kept_N)))
    return torch.where(segments.own(device), online_T.unsqueeze(-1), wide_N) * scale


def default_scale(pool: str, pool_of: str, width: int) -> float:
    """Return the scale of the context score if `model.mixer.scale` is null (docs/equations.md#context-score).

    The mean of n random unit keys has a length of about 1 / sqrt(n), hence sqrt(K). Inputs are normed to length sqrt(K)
    already.
    """
    return math.sqrt(width) if (pool, pool_of) == ("mean", "keys") else 1.0


class Slots(Protocol):
    """The method of `Segments` that an input gate needs."""

    def slots(self, device: torch.device) -> Tensor:
        """Return [columns]: the slot of each column."""


class ContextGate(nn.Module):
    """Logits are the context scores r_t^(i): token and segment decide together (docs/equations.md#context-gate)."""

    needs_scores = True

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: Slots) -> Tensor | None:
        return scores_GTN


class InputGate(nn.Module):
    """Logits are W_gamma x_t, one for each slot: they depend on a memory's position, not on its content.

    See docs/equations.md#input-gate.
    """

    needs_scores = False

    def __init__(self, replicas: int, width: int, heads: int, slots: int) -> None:
        super().__init__()
        self.heads = heads
        self.weight = parameter(replicas, width, heads * slots, init=Normal(1 / math.sqrt(width)))

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: Slots) -> Tensor | None:
        logits_RBHTN = linear(x_RBTD, self.weight).unflatten(-1, (self.heads, -1)).transpose(2, 3)
        trained = logits_RBHTN.shape[-1]
        # Slots beyond those of training get the logit of the last trained slot.
        return logits_RBHTN.flatten(0, 2)[..., segments.slots(x_RBTD.device).clamp(max=trained - 1)]


class NoGate(nn.Module):
    """No logits: every visible memory has weight 1."""

    needs_scores = False

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: Slots) -> Tensor | None:
        return None


#: Gates by their name under `model.mixer.gate`.
GATES: dict[str, type[nn.Module]] = {"context": ContextGate, "input": InputGate, "none": NoGate}

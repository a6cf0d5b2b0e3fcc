"""The linear memory: M_t = M_{t-1} + v_t k_t^T, read M q (MC, arXiv 2602.24281, eq. 3; Katharopoulos et al. 2020)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.kernels.linear import chunkwise
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written


@dataclass(frozen=True)
class LinearWritten:
    """Keys and values are all there is to keep: a read is attention weighted by segment."""

    k_GTK: Tensor
    v_GTV: Tensor
    segments: Segments
    init: Init

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        weights = on_writes(weights_GTN, self.segments, self.init)
        if weights is None:
            return chunkwise.plain_read(q_GTK, self.k_GTK, self.v_GTV)
        return chunkwise.weighted_read(q_GTK, self.k_GTK, self.v_GTV, weights.to(q_GTK), self.segments.segment)

    # At depth 1 mixing matrices and mixing their outputs are the same sum (EQUATIONS 6).
    read_mixed = read


def on_writes(weights_GTN: Tensor | None, segments: Segments, init: Init) -> Tensor | None:
    """For a memory that only adds: from weights on memories to weights on each block's own writes, None being 1.

    Memory i of a checkpoint holds the writes of all blocks up to its last, and so does the online one of the earlier.
    """
    if weights_GTN is None:
        if segments.count == 1 or init.restarts:  # what t sees holds each earlier block once
            return None
        return _ones_on_writes(segments)
    N = segments.count
    if segments.single:
        return weights_GTN if init.restarts else weights_GTN @ weights_GTN.new_ones(N, N).tril()
    kept = weights_GTN[..., :-1] @ segments.holds(init.restarts, weights_GTN.device).to(weights_GTN)
    block = torch.arange(N, device=weights_GTN.device).repeat_interleave(segments.segment)[:, None]
    others = torch.arange(N, device=weights_GTN.device)
    online = (block == others) if init.restarts else (block >= others)
    return kept + weights_GTN[..., -1:] * online


def _ones_on_writes(segments: Segments) -> Tensor:
    """[T, N]: how many of the memories that t sees hold each block's writes. (Later columns meet no causal key.)"""
    visible, own = segments.visible(torch.device("cpu")), segments.own_column(torch.device("cpu"))
    kept = visible.scatter(1, own[:, None], False)[:, : len(segments.spans)].to(torch.float64)
    block = torch.arange(segments.count).repeat_interleave(segments.segment)
    online = block[:, None] >= torch.arange(segments.count)
    return kept @ segments.holds(False, torch.device("cpu")).to(torch.float64) + online


class LinearMemory(Memory):
    """Adds the outer product of value and key; starts at zero and never forgets."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()

    def initial(self, tokens: Tokens) -> State:
        G, _, K = tokens.k.shape
        return State((tokens.k.new_zeros(G, tokens.v.shape[-1], K),))

    def step(self, state: State, token: Tokens) -> State:
        return State((state.weights[0] + token.v[:, :, None] * token.k[:, None, :],))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        return LinearWritten(tokens.k, tokens.v, segments, init)

"""The linear memory: M_t = M_{t-1} + v_t k_t^T, read M q (MC, arXiv 2602.24281, eq. 3; Katharopoulos et al. 2020)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.kernels.linear import chunkwise
from mclab.memories.base import Init, Memory, Segments, State, Written


@dataclass(frozen=True)
class LinearWritten:
    """Keys and values are all there is to keep: a read is attention weighted by segment."""

    k_GTK: Tensor
    v_GTV: Tensor
    segments: Segments
    init: Init

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        weights = self.init.spread(weights_GTN, self.segments)
        if weights is None:
            return chunkwise.plain_read(q_GTK, self.k_GTK, self.v_GTV)
        return chunkwise.weighted_read(q_GTK, self.k_GTK, self.v_GTV, weights.to(q_GTK), self.segments.segment)

    # At depth 1 mixing matrices and mixing their outputs are the same sum (EQUATIONS 6).
    read_mixed = read


class LinearMemory(Memory):
    """Adds the outer product of value and key; starts at zero and never forgets."""

    depth = 1

    def initial(self, k_GTK: Tensor, v_GTV: Tensor) -> State:
        return (k_GTK.new_zeros(k_GTK.shape[0], v_GTV.shape[-1], k_GTK.shape[-1]),)

    def step(self, state: State, k_GK: Tensor, v_GV: Tensor) -> State:
        return (state[0] + v_GV[:, :, None] * k_GK[:, None, :],)

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state[0], q_GK)

    def write(self, k_GTK: Tensor, v_GTV: Tensor, segments: Segments, init: Init) -> Written:
        return LinearWritten(k_GTK, v_GTV, segments, init)

"""Where a segment starts: from scratch (`restart`) or from the last segment's end (`checkpoint`)."""

import torch
from torch import Tensor

from mclab.memories.base import Init, Segments, State


class Restart:
    """Each segment starts from W^0, so segments do not depend on each other."""

    restarts = True

    def start(self, initial: State, last: State) -> State:
        return initial

    def spread(self, weights_GTN: Tensor | None, segments: Segments) -> Tensor | None:
        return weights_GTN


class Checkpoint:
    """Each segment goes on from the last one's final state; momentum is carried too."""

    restarts = False

    def start(self, initial: State, last: State) -> State:
        return last

    def spread(self, weights_GTN: Tensor | None, segments: Segments) -> Tensor | None:
        """Memory i holds the writes of all segments up to i: a write of segment j is read with sum_{i >= j} w^(i)."""
        if weights_GTN is not None:
            N = weights_GTN.shape[-1]
            return weights_GTN @ weights_GTN.new_ones(N, N).tril()
        if segments.count == 1:
            return None
        # Token t sees the memories j..s(t), each of which holds segment j's writes. (Later columns meet no causal key.)
        block = torch.arange(segments.count).repeat_interleave(segments.segment)
        return (block[:, None] - torch.arange(segments.count) + 1).clamp(min=0)


INITS: dict[str, Init] = {"restart": Restart(), "checkpoint": Checkpoint()}

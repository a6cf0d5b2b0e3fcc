"""The vector memory: M_t = M_{t-1} + k_t from a learned b, read M * q (MC, arXiv 2602.24281; V = K).

With segments of one token, a context gate and grm it is q * (b + softmax attention of u over the keys).

See docs/equations.md#vector.
"""

from dataclasses import dataclass

from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.constants import counting
from mclab.memories import sparse_read
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.segment_masks import earlier_of_runs, holds, visible
from mclab.replicas.parameters import Constant, parameter

#: The cost of gathering one entry of a kept memory, forward and backward, in multiply-adds (measured on one core).
GATHER = 16


@dataclass(frozen=True)
class VectorWritten:
    """A written sequence:

    `online` [G, T, K] is the online memory of every token, `kept` [G, M, K] are the kept ones.
    """

    online: Tensor
    kept: Tensor
    segments: Segments

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        if weights_GTN is None:
            seen_TN = visible(self.segments, q_GTK.dtype, q_GTK.device)
            weights_GTN = seen_TN.expand(q_GTK.shape[0], -1, -1)
        column_GT1 = self.segments.own_column(q_GTK.device)[None, :, None].expand(q_GTK.shape[0], -1, 1)
        own = weights_GTN.gather(-1, column_GT1)
        past = weights_GTN.scatter(-1, column_GT1, 0.0)[..., : self.kept.shape[1]]
        return q_GTK * (own * self.online + past @ self.kept)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        (G, M, _), k = self.kept.shape, columns_GTJ.shape[-1] - 1
        if GATHER * k >= M:
            return self.read(q_GTK, sparse_read.spread(weights_GTJ, columns_GTJ, self.segments.columns))
        first_G11 = counting(G, q_GTK.device)[:, None, None] * M
        # Columns that only repeat the token's own have weight zero, so any valid row will do.
        rows_kGT = (columns_GTJ[..., :-1].clamp(max=M - 1) + first_G11).movedim(-1, 0)
        total = weights_GTJ[..., -1:] * self.online
        for j, rows_GT in enumerate(rows_kGT):
            each_GTK = self.kept.flatten(0, 1).index_select(0, rows_GT.flatten()).view_as(q_GTK)
            total = total + weights_GTJ[..., j, None] * each_GTK
        return q_GTK * total

    # The memory acts linearly: mixing memories and mixing reads are the same sum.
    read_mixed = read


class VectorMemory(Memory):
    """A memory that sums the keys."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.bias = parameter(replicas, heads, width // heads, init=Constant(0.0), decays=False)

    def initial(self, tokens: Tokens) -> State:
        return State((self._first(tokens),))

    def step(self, state: State, token: Tokens) -> State:
        return State((state.weights[0] + token.k,))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return state.weights[0] * q_GK

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        first_G1K = self._first(tokens)[:, None]
        own_GNSK = tokens.k.unflatten(1, (segments.count, segments.segment)).cumsum(2)
        blocks_GNK, kind = own_GNSK[:, :, -1], (tokens.k.dtype, tokens.k.device)
        if init.restarts and len(segments.runs) < segments.count:
            own_GNSK = own_GNSK + (earlier_of_runs(segments, *kind) @ blocks_GNK).unsqueeze(2)
        if not init.restarts:
            own_GNSK = own_GNSK + (blocks_GNK.cumsum(1) - blocks_GNK).unsqueeze(2)
        kept = holds(segments, init.restarts, *kind) @ blocks_GNK
        return VectorWritten(own_GNSK.flatten(1, 2) + first_G1K, kept + first_G1K, segments)

    def _first(self, tokens: Tokens) -> Tensor:
        R, H, K = self.bias.shape
        return self.bias.unsqueeze(1).expand(R, tokens.k.shape[0] // (R * H), H, K).flatten(0, 2)

"""The linear memory: M_t = M_{t-1} + v_t k_t^T, read M q (Katharopoulos et al. 2020, arXiv 2006.16236).

See docs/equations.md#linear.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.constants import counting, once
from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight.net import Net
from mclab.kernels.linear import chunkwise, flash_grm, flash_ssc
from mclab.kernels.linear.gate import Gate
from mclab.memories import sparse_read
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.kernel_choice import triton_precision
from mclab.memories.segment_masks import earlier_of_runs, holds


@dataclass(frozen=True)
class LinearWritten:
    """A written sequence keeps only keys and values: a read is linear attention with a weight for each segment.

    `triton` is the precision in which Triton's kernels read; None where torch reads.
    """

    k_GTK: Tensor
    v_GTV: Tensor
    segments: Segments
    init: Init
    triton: str | None = None

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        if self.triton is not None and weights_GTN is not None:
            found = self._by_kernel(q_GTK, weights_GTN, None, self.triton)
            if found is not None:
                return found
        weights = on_writes(weights_GTN, self.segments, self.init, q_GTK)
        if weights is None:
            return chunkwise.plain_read(q_GTK, self.k_GTK, self.v_GTV)
        return chunkwise.weighted_read(q_GTK, self.k_GTK, self.v_GTV, weights, self.segments.segment)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        if self.triton is not None:
            found = self._by_kernel(q_GTK, weights_GTJ, columns_GTJ, self.triton)
            if found is not None:
                return found
        if not self._sparse_is_cheaper(columns_GTJ.shape[-1] - 1):
            return self.read(q_GTK, sparse_read.spread(weights_GTJ, columns_GTJ, self.segments.columns))
        S = self.segments.segment
        before, kept, place = self._states()
        own_GTV = chunkwise.online_read(q_GTK, self.k_GTK, self.v_GTV, before, S)
        return sparse_read.read(
            Net(None, "dot"), [kept], place, self.segments, q_GTK, own_GTV, weights_GTJ, columns_GTJ
        )

    def _by_kernel(self, q_GTK: Tensor, weights: Tensor, chosen: Tensor | None, precision: str) -> Tensor | None:
        S = self.segments.segment
        return flash_ssc.weighted_read(q_GTK, self.k_GTK, self.v_GTV, weights, chosen, S, precision)

    def _sparse_is_cheaper(self, k: int) -> bool:
        """Return whether it costs less to form the states and read k of them than to read all in the cheaper form."""
        (G, T, K), V, S = self.k_GTK.shape, self.v_GTV.shape[-1], self.segments.segment
        if self.segments.count == 1:
            return False
        own = T * S * (K + V) + T * K * V * (1 if self.init.restarts else 2)
        on = costs(self.k_GTK.device.type)
        some = on.folded(G) * own + sparse_read.cost_of_chosen(self.segments, G, k, self.segments.count, K * V, on)
        return some < min(chunkwise.weighted_costs(G, T, K, V, S, on))

    def _states(self) -> tuple[Tensor | None, Tensor, list[int]]:
        """Return the state before each block, the kept states, and the index of each kept memory among the kept states.

        The first is [G, N, V, K], or `None` if every block begins at zero; the kept states are [G, Q, V, K].
        """
        blocks_GNVK = chunkwise.segment_states(self.k_GTK, self.v_GTV, self.segments.segment)
        ends = [end - 1 for _, end in self.segments.spans]
        if not self.init.restarts:
            running = blocks_GNVK.cumsum(1)
            return running - blocks_GNVK, running, ends
        if self.segments.single:
            return None, blocks_GNVK, ends
        kind = blocks_GNVK.dtype, blocks_GNVK.device
        held = [holds(self.segments, True, *kind)]
        if len(self.segments.runs) < self.segments.count:
            held.append(earlier_of_runs(self.segments, *kind))
        flat = blocks_GNVK.flatten(2)
        kept, *earlier = ((each @ flat).unflatten(2, blocks_GNVK.shape[2:]) for each in held)
        return earlier[0] if earlier else None, kept, list(range(len(ends)))

    # At depth 1 mixing matrices and mixing their outputs are the same sum (docs/equations.md#identities).
    read_mixed = read


def on_writes(weights_GTN: Tensor | None, segments: Segments, init: Init, like: Tensor) -> Tensor | None:
    """Turn weights on memories that only add into weights [G, T, N] or [T, N] on the writes of each block.

    With `init: checkpoint` a kept memory holds the writes of all blocks up to its last one, and the online memory holds
    those of all earlier blocks too. `None`, as an argument or a result, means that all weights are 1. The result has
    the dtype and the device of `like`.
    """
    kind = like.dtype, like.device
    if weights_GTN is None:
        if segments.count == 1 or init.restarts:  # the memories that t sees hold each earlier block exactly once
            return None
        return _ones_on_writes(segments, *kind)
    if segments.single:
        return weights_GTN if init.restarts else weights_GTN @ _lower(segments.count, *kind)
    device = weights_GTN.device
    column_GT1 = segments.own_column(device)[None, :, None].expand(weights_GTN.shape[0], -1, 1)
    past_GTN = weights_GTN.scatter(-1, column_GT1, 0.0)[..., :-1]
    past = past_GTN @ holds(segments, init.restarts, *kind)
    return past + weights_GTN.gather(-1, column_GT1) * _online_holds(segments, init.restarts, *kind)


@once
def _lower(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(size, size, dtype=dtype, device=device).tril()


@once
def _online_holds(segments: Segments, restarts: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [T, N]: 1 for the blocks that t's online memory holds, else 0.

    Later blocks of t's run are 1 as well. They have no effect, because the causal mask hides their keys from t.
    """
    run, block = segments.run_of_block(device), counting(segments.count, device)
    holds_NN = run[:, None] == run if restarts else block[:, None] >= block
    return holds_NN.to(dtype).unsqueeze(1).expand(-1, segments.segment, -1).flatten(0, 1)


@once
def _ones_on_writes(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [T, N]: how many of the memories that t sees hold each block's writes. (Later keys are masked anyway.)"""
    visible, own = segments.visible(device), segments.own_column(device)
    past = visible.scatter(1, own[:, None], False)[:, : len(segments.spans)].to(dtype)
    return past @ holds(segments, False, dtype, device) + _online_holds(segments, False, dtype, device)


class LinearMemory(Memory):
    """A memory that adds the outer product of value and key; it starts at zero and never forgets."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.mixer = mixer

    def initial(self, tokens: Tokens) -> State:
        G, _, K = tokens.k.shape
        return State((tokens.k.new_zeros(G, tokens.v.shape[-1], K),))

    def step(self, state: State, token: Tokens) -> State:
        return State((state.weights[0] + token.v[:, :, None] * token.k[:, None, :],))

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return torch.einsum("gvk,gk->gv", state.weights[0], q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        # Flash-GRM reads for the other aggregations, before anything is written (`gated_read`).
        kernel = self.mixer.aggregate == "ssc" and segments.single and init.restarts
        triton = triton_precision(self.mixer, tokens) if kernel else None
        return LinearWritten(tokens.k, tokens.v, segments, init, triton)

    def gated_read(self, tokens: Tokens, q_GTK: Tensor, segment: int, gate: Callable[[], Gate]) -> Tensor | None:
        precision = triton_precision(self.mixer, tokens)
        if precision is None or self.mixer.aggregate == "ssc":
            return None
        return flash_grm.gated_read(q_GTK, tokens.k, tokens.v, gate(), segment, precision)

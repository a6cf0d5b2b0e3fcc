"""This module passes the states H = S^T from chunk to chunk, forward and backward, in the only loop over chunks.

H_{m+1} = D_m H_m + w_m^T z_m. Of a chunk's J updates z, the first C are own_m - r_m H_m, the rest are own_m. Shapes: M
chunks, X folded batch, C tokens, J updates, K key width, V value width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Passed(NamedTuple):
    """The updates of all chunks, and the states between the chunks.

    `updates` z is [M, X, J, V]. `states` [M, X, K, V] are the H carried into each chunk; `None` if there is a single
    chunk that starts from zero. `kept` [X, len(keep), K, V] are the H after the chunks in `keep`; `None` if `keep` is
    empty.
    """

    updates: Tensor
    states: Tensor | None
    kept: Tensor | None


def pass_states(
    own: Tensor, reads: Tensor, writes: Tensor, decay: Tensor | None, start: Tensor | None, keep: Sequence[int]
) -> Passed:
    """Compute the updates of all chunks and the states between them.

    `own` is [M, X, J, V], `reads` r [M, X, C, K], `writes` w [M, X, J, K], `decay` D [M, X, K or 1] (None means 1),
    `start` H_0 [X, K, V] (None means 0).
    """
    if len(own) == 1 and start is None and not keep:
        return Passed(own, None, None)
    return Passed(*_PassStates.apply(own, reads, writes, decay, start, tuple(keep)))  # type: ignore[no-untyped-call]


class _PassStates(torch.autograd.Function):
    """Backward, with g the gradient of H after a chunk and h that of H before it: dz += w g, h = D g + dH - r^T dz;
    then dr = -dz H^T, dw = z g^T, dD = sum of g H over V."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        reads: Tensor,
        writes: Tensor,
        decay: Tensor | None,
        start: Tensor | None,
        keep: tuple[int, ...],
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        (M, X, _, V), (C, K) = own.shape, reads.shape[2:]
        updates, states = own.clone(memory_format=torch.contiguous_format), own.new_empty(M + 1, X, K, V)
        states[0] = 0.0 if start is None else start
        for m in range(M):
            if m or start is not None:
                _first(updates[m], C).sub_(torch.bmm(reads[m], states[m]))  # baddbmm into a slice is slow
            if m + 1 == M and m not in keep:
                break
            if decay is None:
                torch.baddbmm(states[m], writes[m].mT, updates[m], out=states[m + 1])
            else:
                after = torch.mul(states[m], decay[m].unsqueeze(-1), out=states[m + 1])
                after.baddbmm_(writes[m].mT, updates[m])
        ctx.keep, ctx.live = keep, start is not None
        ctx.save_for_backward(reads, writes, decay, states, updates)
        carried = states[:M] if M > 1 or start is not None else None
        return updates, carried, torch.stack([states[m + 1] for m in keep], 1) if keep else None

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        given_updates, given_states, given_kept = grads
        reads, writes, decay, states, updates = ctx.saved_tensors
        assert given_updates is not None
        M, C, states = len(updates), reads.shape[2], states[:-1]
        made = given_updates.clone(memory_format=torch.contiguous_format)
        after = torch.empty_like(states)  # the gradient of H after each chunk
        after[-1] = 0.0
        grad = after[-1]
        for m in reversed(range(M)):
            if m in ctx.keep:
                assert given_kept is not None
                grad += given_kept[:, ctx.keep.index(m)]
            if m + 1 < M or m in ctx.keep:
                made[m].baddbmm_(writes[m], grad)
            if m or ctx.live:
                assert given_states is not None
                before = after[m - 1] if m else torch.empty_like(grad)
                if decay is None:
                    torch.add(given_states[m], grad, out=before)
                else:
                    torch.addcmul(given_states[m], grad, decay[m].unsqueeze(-1), out=before)
                grad = before.baddbmm_(reads[m].mT, _first(made[m], C), alpha=-1)
        grad_reads = grad_decay = None
        if M > 1 or ctx.live:  # else the only state is zero
            grad_reads = (_first(made, C) @ states.mT).neg_()
            grad_decay = None if decay is None else (after * states).sum(-1).sum_to_size(decay.shape)
        return made, grad_reads, updates @ after.mT, grad_decay, grad if ctx.live else None, None


def _first(updates: Tensor, count: int) -> Tensor:
    """Return the first `count` updates of a chunk: those from which the reads r H are subtracted."""
    return updates.narrow(-2, 0, count)

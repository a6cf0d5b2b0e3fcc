"""This module launches the kernels of the chunk loop of depth 2 for torch: one launch forward and one backward.

The number of launches does not depend on the number of chunks. Arguments and results are those of
`fused.descend_and_read`. Shapes as in chunkwise.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.states import Plan, shared
from mclab.kernels.fastweight.triton import backward, forward
from mclab.kernels.launch import launch, power_of_two

#: By padded width: how many warps compute a program, and how far ahead its loop loads.
SCHEDULE = {16: (8, 1), 32: (8, 1)}


def descend_and_read(
    plan: Plan,
    net: Net,
    tokens: tuple[Tensor, Tensor, Tensor],
    rates: tuple[Tensor, Tensor | None, Tensor, Tensor | None],
    start: Sequence[Tensor],
    low: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Return the results of `fused.descend_and_read`, for two layers.

    With `low`, products are in tf32; else they are in fp32.
    """
    y, *kept = _Deep.apply(plan, replace(net, gain=None), low, net.gain, *tokens, *rates, *start)  # type: ignore[no-untyped-call]
    return y, kept


def constants(
    net: Net, plan: Plan, K: int, C: int, scaled: bool, normed: bool, low: bool, double: bool
) -> dict[str, Any]:
    """Return the compile-time arguments that both kernels have."""
    import triton.language as tl

    return {
        "K": K, "KP": power_of_two(K, 16), "CP": power_of_two(C, 16), "SLOTS": plan.slots, "SCALED": scaled,
        "TO_START": plan.to_start, "L2": net.objective == "l2", "NORM": normed, "SKIP": net.skip,
        "IP": "tf32" if low else "ieee", "SUM": tl.float64 if double else tl.float32,
    }  # fmt: skip


class _Deep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: Plan, bare: Net, low: bool, gain: Tensor | None, q: Tensor, k: Tensor, v: Tensor,
        writes: Tensor, factors: Tensor | None, ends: Tensor, mix: Tensor | None, start1: Tensor, start2: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        given = [
            x if x is None else x.contiguous() for x in (gain, q, k, v, writes, factors, ends, mix, start1, start2)
        ]
        gain, q, k, v, writes, factors, ends, mix, start1, start2 = given  # type: ignore[assignment]
        (M, X, C, K), last = q.shape, q.shape[0] - 1 in plan.keep
        known = constants(bare, plan, K, C, factors is not None, gain is not None, low, q.dtype == torch.float64)
        schedule = dict(zip(("num_warps", "num_stages"), SCHEDULE[known["KP"]], strict=True))
        states = [w.new_empty(M + last, X, plan.slots, *w.shape[1:]) for w in (start1, start2)]
        y = torch.empty_like(v)
        read = (q, k, v, writes, _or(factors, q), ends, _or(mix, q), _or(gain, q), start1, start2, *states)
        sizes = (M, X, C, X // len(start1))
        launch(forward.forward, (X,), q, *read, y, *sizes, bare.floor, **known, LAST=last, **schedule)
        ctx.plan, ctx.bare, ctx.known, ctx.schedule, ctx.sizes = plan, bare, known, schedule, sizes
        ctx.save_for_backward(*given, *states)
        if not plan.keep:
            return (y,)
        after = integers(tuple(m + 1 for m in plan.keep), q.device)
        return y, *(_kept(each, after, w, plan.to_start) for each, w in zip(states, (start1, start2), strict=True))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gain, q, k, v, writes, factors, ends, mix, start1, start2, *states = ctx.saved_tensors
        plan, (M, X, *_) = ctx.plan, ctx.sizes
        dy, *dkept = (x.contiguous() for x in grads)
        made = [x if x is None else torch.empty_like(x) for x in (q, k, v, writes, factors, ends, mix)]
        dgain = None if gain is None else gain.new_empty(X, gain.shape[-1])
        dstart = [w.new_empty(X, *w.shape[1:]) for w in (start1, start2)]
        places = integers(tuple(plan.keep.index(m) if m in plan.keep else -1 for m in range(M)), q.device)
        read = (q, k, v, writes, _or(factors, q), ends, _or(mix, q), _or(gain, q), start1, start2, *states, dy, places)
        written = [_or(x, q) for x in (*made, dgain)]
        launch(
            backward.backward, (X,), q, *read, *(dkept or (q, q)), *written, *dstart, *ctx.sizes, len(plan.keep),
            ctx.bare.floor, **ctx.known, KEEPS=bool(dkept), **ctx.schedule,
        )  # fmt: skip
        of_start = (shared(w, each).sum(1) for w, each in zip((start1, start2), dstart, strict=True))
        return None, None, None, None if dgain is None else dgain.unsqueeze(1), *made, *of_start


def _kept(states: Tensor, after: Tensor, start: Tensor, to_start: bool) -> Tensor:
    """Return W after the chunks to keep, [X, len(keep), K, E]."""
    own = states[:, :, 0].index_select(0, after).transpose(0, 1)
    if not to_start:
        return own.contiguous()
    return (shared(start, own) + start[:, None, None]).flatten(0, 1)


def _or(x: Tensor | None, other: Tensor) -> Tensor:
    """Return `x`, or `other` if `x` is None: a kernel needs some tensor, even for an argument that it does not read."""
    return other if x is None else x

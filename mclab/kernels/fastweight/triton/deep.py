"""The kernels of the chunk loop of depth 2 for torch: two launches forward, five backward, however many
chunks there are.

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
from mclab.kernels.fastweight.triton import backward, forward, reads_backward
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
    """The compile-time arguments of all kernels."""
    import triton.language as tl

    return {
        "K": K, "KP": power_of_two(K, 16), "CP": power_of_two(C, 16), "SLOTS": plan.slots, "SCALED": scaled,
        "TO_START": plan.to_start, "L2": net.objective == "l2", "NORM": normed, "SKIP": net.skip,
        "IP": "tf32" if low else "ieee", "SUM": tl.float64 if double else tl.float32,
    }  # fmt: skip


def start_programs(kernel: Any, count: int, known: dict[str, Any], *given: Any, **more: Any) -> None:
    """Launch `count` programs with the compile-time arguments that the kernel has, of those that are `known`."""
    warps, stages = SCHEDULE[known["KP"]]
    own = {name: value for name, value in known.items() if name in kernel.arg_names}
    launch(kernel, (count,), given[0], *given, **own, **more, num_warps=warps, num_stages=stages)


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
        states = [w.new_empty(M + last, X, plan.slots, *w.shape[1:]) for w in (start1, start2)]
        y, sizes = torch.empty_like(v), (X, C, X // len(start1))
        from_descent = (*(q.new_empty(M, X, C, 4 * K) for _ in range(2)), torch.empty_like(v))
        own = (k, v, ends, _or(mix, q), _or(gain, q), start1, start2, *states, *from_descent)
        start_programs(forward.states, X, known, *own, M, *sizes, bare.floor, LAST=last)
        read = (q, k, writes, _or(factors, q), start1, start2, *states, *from_descent)
        start_programs(forward.reads, M * X, known, *read, y, *sizes)
        ctx.plan, ctx.bare, ctx.known, ctx.sizes = plan, bare, known, sizes
        ctx.save_for_backward(*given, *states)
        if not plan.keep:
            return (y,)
        after = integers(tuple(m + 1 for m in plan.keep), q.device)
        return y, *(_kept(each, after, w, plan.to_start) for each, w in zip(states, (start1, start2), strict=True))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gain, q, k, v, writes, factors, ends, mix, start1, start2, *states = ctx.saved_tensors
        plan, sizes, known, floor, starts = ctx.plan, ctx.sizes, ctx.known, ctx.bare.floor, (start1, start2)
        (M, X, C, K), (dy, *dkept) = q.shape, (x.contiguous() for x in grads)
        dq, dk, dv, dwrites, dfactors, dends, dmix = (
            x if x is None else torch.empty_like(x) for x in (q, k, v, writes, factors, ends, mix)
        )
        dgain = None if gain is None else gain.new_empty(X, K)
        # Names as in the kernels: what one leaves to the next.
        a, slope, bend, u1, own, down, da = (q.new_empty(M, X, C, 4 * K) for _ in range(7))
        u2, h, du2 = (torch.empty_like(v) for _ in range(3))
        into = [w.new_empty(M + 1, X, plan.slots, *w.shape[1:]) for w in starts]
        whole = [w.new_empty(*((M, X) if plan.to_start else (X,)), *w.shape[1:]) for w in starts]
        given, made = (q, k, v, writes, _or(factors, q), _or(gain, q), *starts, *states), (dwrites, _or(dfactors, q))
        start_programs(reads_backward.again, M * X, known, *given, a, slope, bend, u1, u2, h, own, *sizes, floor)
        start_programs(
            reads_backward.second_backward, M * X, known, writes, _or(factors, q), start2, states[1], dy, a, u2, own,
            *made, down, da, du2, into[1], whole[1], *sizes,
        )  # fmt: skip
        start_programs(
            reads_backward.first_backward, M * X, known, q, k, writes, _or(factors, q), *starts, *states, slope, bend,
            u1, u2, down, da, dq, dk, *made, du2, *into, *whole, *sizes,
        )  # fmt: skip
        places = integers(tuple(plan.keep.index(m) if m in plan.keep else -1 for m in range(M)), q.device)
        kept, keeps = (places, *(dkept or (q, q))), bool(dkept)
        start_programs(
            backward.states_backward, X, known, k, v, ends, _or(mix, q), _or(gain, q), start2, states[1], *kept, a,
            slope, bend, u2, h, du2, *into, dv, _or(dgain, q), *whole, M, *sizes, len(plan.keep), floor, KEEPS=keeps,
        )  # fmt: skip
        start_programs(
            backward.tokens_backward, M * X, known, k, ends, start1, *states, *kept, a, u1, u2, slope, bend, du2, dv,
            *into, dk, dends, _or(dmix, q), *whole, *sizes, len(plan.keep), KEEPS=keeps,
        )  # fmt: skip
        of_start = (
            each.unflatten(-3, (len(w), -1)).sum((0, 2) if plan.to_start else 1)
            for w, each in zip(starts, whole, strict=True)
        )
        dgain = None if dgain is None else dgain.unsqueeze(1)
        return None, None, None, dgain, dq, dk, dv, dwrites, dfactors, dends, dmix, *of_start


def _kept(states: Tensor, after: Tensor, start: Tensor, to_start: bool) -> Tensor:
    """Return W after the chunks to keep, [X, len(keep), K, E]."""
    own = states[:, :, 0].index_select(0, after).transpose(0, 1)
    if not to_start:
        return own.contiguous()
    return (shared(start, own) + start[:, None, None]).flatten(0, 1)


def _or(x: Tensor | None, other: Tensor) -> Tensor:
    """Return `x`, or `other` if `x` is None: a kernel needs some tensor, even for an argument that it does not read."""
    return other if x is None else x

"""This module has the two ways to write a sequence, with their backward passes by hand.

Shapes as in chunkwise.py and states.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from mclab.kernels.fastweight import descent
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.states import Back, Forth, Plan, stacked


def accumulate(
    plan: Plan, keys: Tensor, values: Tensor, ends: Tensor, mix: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Write into one matrix, from zero; return the slots carried into each chunk, and the kept weights.

    The kept weights are [X, len(keep), n, w], or None if there are none.
    """
    slots, *kept = _Accumulate.apply(plan, keys, values, ends, mix)  # type: ignore[no-untyped-call]
    return slots, kept[0] if kept else None


def descend(
    plan: Plan, net: Net, k: Tensor, v: Tensor, ends: Tensor, mix: Tensor | None, start: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor | None]]:
    """Write by descent; return the inputs, updates, slots and kept weights of each layer. `start` are W^0 [X, n, w]."""
    made = _Descend.apply(plan, replace(net, gain=None), net.gain, k, v, ends, mix, *start)  # type: ignore[no-untyped-call]
    inputs, updates, slots, kept = _dealt(made, len(plan.widens))
    return [k, *inputs], updates, slots, kept or [None] * len(plan.widens)


def _dealt(made: Sequence[Any], depth: int) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the parts of `made`: inputs (without the first layer's, the keys), updates, slots and kept weights."""
    bounds = [0, depth - 1, 2 * depth - 1, 3 * depth - 1, len(made)]
    inputs, updates, slots, kept = (list(made[a:b]) for a, b in pairwise(bounds))
    return inputs, updates, slots, kept


class _Accumulate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: Plan, keys: Tensor, values: Tensor, ends: Tensor, mix: Tensor | None
    ) -> tuple[Tensor, ...]:
        narrow, wide = (keys, values) if plan.widens[0] else (values, keys)
        forth = Forth(plan, keys.shape[:2], keys.new_zeros(1, narrow.shape[-1], wide.shape[-1]))
        for m in range(keys.shape[0]):
            forth.advance(m, (narrow[m], wide[m]), ends[m], _at(mix, m))
        ctx.plan = plan
        ctx.save_for_backward(narrow, wide, ends, mix, forth.slots)
        return forth.slots, *stacked([forth])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        plan, (narrow, wide, ends, mix, slots) = ctx.plan, ctx.saved_tensors
        back = Back(plan, slots.new_zeros(1, *slots.shape[3:]), slots, grads[0], grads[1] if plan.keep else None)
        grad_narrow, grad_wide, grad_ends = (torch.zeros_like(z) for z in (narrow, wide, ends))
        grad_mix = None if mix is None else torch.zeros_like(mix)
        for m in reversed(range(slots.shape[0])):
            vectors, into = (narrow[m], wide[m]), (grad_ends[m], _at(grad_mix, m))
            own = back.through(m, vectors, ends[m], into)
            if own is not None:
                grad_narrow[m], grad_wide[m] = own
            back.step(m, _at(mix, m))
        pair = (grad_narrow, grad_wide) if plan.widens[0] else (grad_wide, grad_narrow)
        return None, *pair, grad_ends, grad_mix


class _Descend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        bare: Net,
        gain: Tensor | None,
        k: Tensor,
        v: Tensor,
        ends: Tensor,
        mix: Tensor | None,
        *start: Tensor,
    ) -> tuple[Tensor, ...]:
        net, (M, X, C, _) = replace(bare, gain=gain), k.shape
        forths = [Forth(plan, (M, X), w) for w in start]
        outer = [(w.shape[1:] if widens else w.mT.shape[1:]) for w, widens in zip(start, plan.widens, strict=True)]
        inputs = [k, *(k.new_empty(M, X, C, size[0]) for size in outer[1:])]
        updates = [k.new_empty(M, X, C, size[1]) for size in outer]
        ctx.traces = []
        for m in range(M):
            weights = [forth.weights(m) for forth in forths]
            a, u, trace = descent.descend(net, weights, plan.widens, k[m], v[m])
            ctx.traces.append(trace)
            for i, forth in enumerate(forths):
                updates[i][m] = u[i]
                if i:
                    inputs[i][m] = a[i]
                forth.advance(m, _sides(plan, i, a[i], u[i]), ends[m], _at(mix, m))
        ctx.plan, ctx.bare = plan, bare
        slots = [forth.slots for forth in forths]
        ctx.save_for_backward(gain, v, ends, mix, *inputs, *updates, *slots, *(forth.start for forth in forths))
        return *inputs[1:], *updates, *slots, *stacked(forths)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        plan, depth, (gain, v, ends, mix, *saved) = ctx.plan, len(ctx.plan.widens), ctx.saved_tensors
        inputs, updates, slots, start = (saved[i * depth : (i + 1) * depth] for i in range(4))
        grad_inputs, grad_updates, grad_slots, grad_kept = _dealt(grads, depth)
        backs = [Back(plan, *each) for each in zip(start, slots, grad_slots, grad_kept or [None] * depth, strict=True)]
        made = [None if z is None else torch.zeros_like(z) for z in (gain, inputs[0], v, ends, mix)]
        for m in reversed(range(v.shape[0])):
            a, u = [x[m] for x in inputs], [x[m] for x in updates]
            grad_a: list[Tensor] = [torch.zeros_like(a[0]), *(x[m] for x in grad_inputs)]
            grad_u: list[Tensor] = [x[m] for x in grad_updates]
            for i, back in enumerate(backs):
                pair = back.through(m, _sides(plan, i, a[i], u[i]), ends[m], (_at(made[3], m), _at(made[4], m)))
                if pair is not None:
                    own_a, own_u = _sides(plan, i, *pair)
                    grad_a[i], grad_u[i] = own_a.add_(grad_a[i]), own_u.add_(grad_u[i])
            weights = [back.views.weights(w, m) for back, w in zip(backs, start, strict=True)]
            into = [back.step(m, _at(mix, m))[1] for back in backs]
            known = a, u, ctx.traces[m]
            own = descent.descend_backward(
                replace(ctx.bare, gain=gain), weights, plan.widens, known, (grad_a, grad_u), into
            )
            totals = (_at(made[1], m), _at(made[2], m), made[0])
            for total, each in zip(totals, own, strict=True):
                if each is not None:
                    total += each
            for back, grad_weights in zip(backs, into, strict=True):
                back.close(m, grad_weights)
        return None, None, *made, *(back.grad_start for back in backs)


def _sides(plan: Plan, i: int, a: Any, u: Any) -> tuple[Any, Any]:
    """Return the inputs and updates of layer i as (narrow, wide), or (narrow, wide) as inputs and updates."""
    return (a, u) if plan.widens[i] else (u, a)


def _at(x: Any, m: int) -> Any:
    return None if x is None else x[m]

"""This module descends along a sequence and reads every token t with W_t, chunk by chunk in one pass, and goes back.

The only tensors of the size of a state that it writes are the states themselves, and each state is used while it is in
the cache. Shapes as in chunkwise.py and states.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight import descent, reads
from mclab.kernels.fastweight.descent import Trace
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.states import Back, Forth, Plan, outer, product, stacked


def descend_and_read(
    plan: Plan,
    net: Net,
    tokens: tuple[Tensor, Tensor, Tensor],
    rates: tuple[Tensor, Tensor | None, Tensor, Tensor | None],
    start: Sequence[Tensor],
) -> tuple[Tensor, list[Tensor]]:
    """Return the last layer's output for q [M, X, C, V], and the kept weights of each layer [X, len(keep), n, w].

    Token t is read with the weights W_t. The list is empty if no weights are kept. `tokens` are (q, k, v); `rates` are
    (writes, factors, ends, mix).
    """
    y, *kept = _Fused.apply(plan, replace(net, gain=None), net.gain, *tokens, *rates, *start)  # type: ignore[no-untyped-call]
    return y, kept


@dataclass(frozen=True)
class _Chunk:
    """The tensors of a chunk that the backward pass needs.

    They are a, u and the trace of the descent; and, for each layer of the read, its input x and output z, its scores,
    and the result of `reads.carried`.
    """

    inputs: list[Tensor]
    updates: list[Tensor]
    trace: Trace
    xs: list[Tensor]
    outputs: list[Tensor]
    scores: list[Tensor]
    through: list[Tensor | None]


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        bare: Net,
        gain: Tensor | None,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        writes: Tensor,
        factors: Tensor | None,
        ends: Tensor,
        mix: Tensor | None,
        *start: Tensor,
    ) -> tuple[Tensor, ...]:
        net, chunks = replace(bare, gain=gain), []
        forths = [Forth(plan, k.shape[:2], w) for w in start]
        each = zip(*(_chunks(z, k.shape[0]) for z in (q, k, v, writes, factors, ends, mix)), strict=True)
        for m, (q_m, k_m, v_m, writes_m, factors_m, ends_m, mix_m) in enumerate(each):
            own = [forth.weights(m) for forth in forths]
            known = descent.descend(net, own, plan.widens, k_m, v_m)
            chunks.append(_read(plan, forths, m, q_m, writes_m, factors_m, known))
            for forth, widens, a, u in zip(forths, plan.widens, *known[:2], strict=True):
                forth.advance(m, (a, u) if widens else (u, a), ends_m, mix_m)
        ctx.plan, ctx.bare, ctx.chunks = plan, bare, chunks
        firsts, slots = [forth.start for forth in forths], [forth.slots for forth in forths]
        ctx.save_for_backward(gain, k, v, writes, factors, ends, mix, *firsts, *slots)
        y = torch.stack([chunk.outputs[-1] for chunk in chunks])
        return y, *stacked(forths)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *grad_kept: Tensor) -> tuple[Tensor | None, ...]:
        run = _Run(ctx.plan, ctx.bare, ctx.saved_tensors, grad_kept)
        for m in reversed(range(grad.shape[0])):
            run.back(m, grad[m], ctx.chunks[m])
        return None, None, *run.grads, *(back.grad_start for back in run.backs)


def _read(
    plan: Plan,
    forths: Sequence[Forth],
    m: int,
    q: Tensor,
    writes: Tensor,
    factors: Tensor | None,
    known: tuple[list[Tensor], list[Tensor], Trace],
) -> _Chunk:
    """Return the reads y = W_t x of the tokens of chunk m, through all layers, and the `_Chunk` for going back."""
    chunk = _Chunk(*known, [], [], [], [])
    from_start, x = plan.from_start(m, factors is not None), q
    count = 0 if from_start and m == 0 else plan.count(m)
    if factors is not None and count < plan.slots:
        factors = factors[:, :, :count]
    for i, forth in enumerate(forths):
        widens, a, u = plan.widens[i], chunk.inputs[i], chunk.updates[i]
        y = product(x, forth.start if widens else forth.start.mT) if from_start else torch.zeros_like(u)
        scores = torch.empty_like(writes)
        through = None
        if count:
            through = reads.carried(x, forth.views.matrices[m], factors, widens, y)
        reads.within(x, writes, a, u, scores, y)
        chunk.xs.append(x)
        chunk.outputs.append(y)
        chunk.scores.append(scores)
        chunk.through.append(through)
        x = F.gelu(y)
    return chunk


class _Run:
    """One backward pass.

    `grads` are the gradients of gain, q, k, v, writes, factors, ends and mix, filled by chunks.
    """

    def __init__(self, plan: Plan, bare: Net, saved: Sequence[Any], grad_kept: Sequence[Tensor]) -> None:
        gain, k, v, writes, factors, ends, mix, *rest = saved
        depth, M = len(plan.widens), k.shape[0]
        self.plan, self.net, self.start = plan, replace(bare, gain=gain), rest[:depth]
        made = (gain, k, k, v, writes, factors, ends, mix)
        self.grads: list[Tensor | None] = [None if z is None else torch.zeros_like(z) for z in made]
        self.writes, self.factors, self.ends, self.mix = (_chunks(z, M) for z in (writes, factors, ends, mix))
        self.into = list(zip(*(_chunks(z, M) for z in self.grads[1:]), strict=True))
        kept: Sequence[Tensor | None] = grad_kept or [None] * depth
        each = zip(self.start, rest[depth:], kept, strict=True)
        self.backs = [Back(plan, first, slots, None, own) for first, slots, own in each]

    def back(self, m: int, grad: Tensor, chunk: _Chunk) -> None:
        """Go back over chunk m, given `grad`, the gradient of its reads."""
        into_q, into_k, into_v, into_writes, into_factors, into_ends, into_mix = self.into[m]
        grad_a: list[Tensor] = []
        grad_u: list[Tensor] = []
        for back, widens, a, u in zip(self.backs, self.plan.widens, chunk.inputs, chunk.updates, strict=True):
            pair = (a, u) if widens else (u, a)
            made = back.through(m, pair, self.ends[m], (into_ends, into_mix))
            narrow, wide = (torch.zeros_like(z) for z in pair) if made is None else made
            grad_a.append(narrow if widens else wide)
            grad_u.append(wide if widens else narrow)
        into = [back.step(m, self.mix[m]) for back in self.backs]
        grad_slots = [each.flatten(1, 2) for each, _ in into]
        into_q.copy_(self._read(m, grad, chunk, grad_a, grad_u, grad_slots, into_writes, into_factors))
        own = [back.views.weights(w, m) for back, w in zip(self.backs, self.start, strict=True)]
        known, acc = (chunk.inputs, chunk.updates, chunk.trace), [each for _, each in into]
        grads = descent.descend_backward(self.net, own, self.plan.widens, known, (grad_a, grad_u), acc)
        for total, made_grad in ((into_k, grads[0]), (into_v, grads[1]), (self.grads[0], grads[2])):
            if total is not None and made_grad is not None:
                total += made_grad
        for back, each in zip(self.backs, acc, strict=True):
            back.close(m, each)

    def _read(
        self,
        m: int,
        grad: Tensor,
        chunk: _Chunk,
        grad_a: Sequence[Tensor],
        grad_u: Sequence[Tensor],
        grad_slots: list[Tensor],
        grad_writes: Tensor,
        grad_factors: Tensor | None,
    ) -> Tensor:
        """Return the gradient of q, and add the gradients of a, u, the slots, writes and factors to the arguments."""
        plan, factors = self.plan, self.factors[m]
        from_start = plan.from_start(m, factors is not None)
        count = 0 if from_start and m == 0 else plan.count(m)
        if factors is not None and grad_factors is not None and count < plan.slots:
            factors, grad_factors = factors[:, :, :count], grad_factors[:, :, :count]
        for i in reversed(range(len(self.backs))):
            x, start, widens, back = chunk.xs[i], self.start[i], plan.widens[i], self.backs[i]
            if from_start:
                grad_x = product(grad, start.mT if widens else start)
                outer(*((x, grad) if widens else (grad, x)), back.grad_start)
            else:
                grad_x = torch.zeros_like(x)
            if count:
                out = (grad_x, grad_slots[i], grad_factors)
                reads.carried_backward(grad, x, back.views.matrices[m], factors, widens, chunk.through[i], out)
            known = self.writes[m], chunk.inputs[i], chunk.updates[i], chunk.scores[i]
            reads.within_backward(grad, x, *known, (grad_x, grad_writes, grad_a[i], grad_u[i]))
            grad = torch.ops.aten.gelu_backward(grad_x, chunk.outputs[i - 1]) if i else grad_x
        return grad


def _chunks(x: Tensor | None, count: int) -> Sequence[Any]:
    """Return the chunks of `x`, or None for each of `count` chunks."""
    return [None] * count if x is None else x.unbind()

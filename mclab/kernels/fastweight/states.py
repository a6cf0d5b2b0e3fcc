"""A layer's matrices from chunk to chunk, forward and backward: a stack of slots that a chunk's rank-1 updates advance.

Every layer's matrices are stored with their wide side last, N [X, slots, n, w]. A layer that widens (I <= O) has its
inputs a as narrow and its updates u as wide vectors, and stores W^T; a layer that narrows has them the other way round,
and stores W. So every product with all slots of a layer is one product with [slots * n, w]. The first slot is
D = W - W^0 where decay leads back to W^0, else W; the second slot, if there is momentum, is S. A chunk turns the slots
N into N' = mix N + sum_j e_j narrow_j wide_j^T, with mix [X, s, s] and e [X, J, s]. Shapes: X folded batch, M chunks, J
writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: Narrow and wide vectors, or their gradients.
Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Plan:
    """The layout of the states of a sequence.

    `widens` says for each layer whether it widens; `slots` is the number of slots; `to_start` is True if decay leads
    back to W^0; the first `live` slots are not zero at the start; `keep` lists the chunks whose final W is wanted.
    """

    widens: tuple[bool, ...]
    slots: int
    to_start: bool
    live: int
    keep: tuple[int, ...]

    def from_start(self, m: int, scaled: bool) -> bool:
        """Return whether the reads of chunk m add W^0 x separately; `scaled` is True if slots have factors."""
        return self.to_start or (m == 0 and self.live > 0 and not scaled)

    def count(self, m: int) -> int:
        """Return how many of the slots carried into chunk m are not zero."""
        return self.slots if m else self.live


class Forth:
    """The forward pass, which fills `slots` [M, X, s, n, w], the states carried into each chunk.

    `kept` has W [X, n, w] after each chunk in `plan.keep`.
    """

    def __init__(self, plan: Plan, shape: Sequence[int], start: Tensor) -> None:
        """Begin with the matrices `start`.

        `shape` is (M, X); `start` [F, n, w] is W^0, where X / F adjacent sequences share a matrix.
        """
        self.plan, self.start = plan, start if start[0].is_contiguous() else start.contiguous()
        self.kept: list[Tensor] = []
        self.slots = start.new_empty(*shape, plan.slots, *start.shape[1:])
        if plan.live:  # what lies beyond the live slots of the first chunk is never read
            shared(start, self.slots[0, :, 0]).copy_(start.unsqueeze(1))
        self.views = Views(plan, self.slots)

    def advance(self, m: int, vectors: Pair, ends: Tensor, mix: Tensor | None) -> None:
        """Advance the slots past chunk m, given its narrow [X, J, n] and wide [X, J, w] vectors.

        `ends` e is [X, J, s], `mix` [X, s, s].
        """
        plan, last = self.plan, m + 1 == len(self.views.slots)
        if last and m not in plan.keep:
            return
        narrow, wide = vectors
        if last:
            made, ends, mix = (
                torch.empty_like(self.slots[0, :, :1]),
                ends[:, :, :1],
                None if mix is None else mix[:, :1],
            )
            new, flat = made.flatten(1, 2), made.flatten(2)
        else:
            made, new, flat = self.views.slots[m + 1], self.views.matrices[m + 1], self.views.flat[m + 1]
        moved, count = scaled(narrow, ends).mT, plan.count(m)
        if count == 0:
            torch.bmm(moved, wide, out=new)
        elif mix is None:
            torch.baddbmm(self.views.matrices[m], moved, wide, out=new)
        else:
            torch.bmm(mix if count == mix.shape[2] else mix[:, :, :count], self.views.flat[m], out=flat)
            new.baddbmm_(moved, wide)
        if m in plan.keep:
            self.kept.append(_moved(self.start, made[:, 0]) if plan.to_start else made[:, 0])

    def weights(self, m: int) -> Tensor:
        """Return W carried into chunk m: [X, n, w], or W^0 [F, n, w] for the first chunk."""
        return self.views.weights(self.start, m)


class Views:
    """Views of the slots that are not zero, chunk by chunk: [X, s, n, w], [X, s * n, w] and [X, s, n * w]."""

    def __init__(self, plan: Plan, slots: Tensor) -> None:
        self.plan, self.slots = plan, list(slots.unbind())
        self.slots[0] = self.slots[0][:, : plan.live]
        self.matrices, self.flat = list(slots.flatten(2, 3).unbind()), list(slots.flatten(3).unbind())
        self.matrices[0], self.flat[0] = self.slots[0].flatten(1, 2), self.slots[0].flatten(2)

    def weights(self, start: Tensor, m: int) -> Tensor:
        """Return W carried into chunk m: [X, n, w], or W^0 [F, n, w] for the first chunk."""
        if m == 0:
            return start
        own = self.slots[m].select(1, 0)
        return _moved(start, own) if self.plan.to_start else own


class Back:
    """The backward pass of `Forth`, from the last chunk to the first.

    For each chunk, call `through`, `step` and `close`, in this order.
    """

    def __init__(
        self, plan: Plan, start: Tensor, slots: Tensor, grad_slots: Tensor | None, grad_kept: Tensor | None
    ) -> None:
        """Begin after the last chunk. `grad_slots` has the shape of `slots`; `grad_kept` is [X, len(keep), n, w]."""
        self.plan, self.views, self.grad_slots, self.grad_kept = plan, Views(plan, slots), grad_slots, grad_kept
        self.grad_start = torch.zeros_like(start)
        #: The gradient of the slots [X, s, n, w] after the current chunk; from `step` on, that of the slots carried
        #: into it.
        self.grad: Tensor | None = None

    def through(self, m: int, vectors: Pair, ends: Tensor, into: tuple[Tensor, Tensor | None]) -> Pair | None:
        """Return the gradients of narrow and wide, None if they are zero; add those of e and mix to `into`.

        With G the gradient of N' and t_sj = G_s wide_j: d narrow_j = sum_s e_sj t_sj, d e_sj = t_sj . narrow_j, d
        wide_j = sum_s e_sj G_s^T narrow_j, d mix = G N^T.
        """
        self._add_kept(m)
        if self.grad is None:
            return None
        (narrow, wide), (grad_ends, grad_mix), matrix = vectors, into, self.grad.flatten(1, 2)
        s, count = self.grad.shape[1], self.plan.count(m)
        if s < ends.shape[2]:
            ends, grad_ends = ends[:, :, :s], grad_ends[:, :, :s]
        t = torch.bmm(wide, matrix.mT)
        grad_ends += dots(t, narrow, s)
        if grad_mix is not None and count:
            if (s, count) != grad_mix.shape[1:]:
                grad_mix = grad_mix[:, :s, :count]
            grad_mix.baddbmm_(self.grad.flatten(2), self.views.flat[m].mT)
        return summed(t, ends), torch.bmm(scaled(narrow, ends), matrix)

    def step(self, m: int, mix: Tensor | None) -> tuple[Tensor, Tensor]:
        """Go back over chunk m. Return the gradients of the slots [X, s, n, w] and of W that are carried into it.

        Further gradients are to be added to both of these tensors.
        """
        count, after, like = self.plan.count(m), self.grad, self.views.slots[m]
        given = None if self.grad_slots is None else self.grad_slots[m, :, :count]
        if after is None or count == 0:
            self.grad = torch.zeros_like(like) if given is None else given.clone()
        elif mix is None:
            self.grad = after if given is None else given + after
        else:
            back, flat = mix[:, : after.shape[1], :count].mT, after.flatten(2)
            made = torch.bmm(back, flat) if given is None else torch.baddbmm(given.flatten(2), back, flat)
            self.grad = made.view(like.shape)
        if m == 0:
            return self.grad, self.grad_start
        return self.grad, torch.zeros_like(like[:, 0]) if self.plan.to_start else self.grad[:, 0]

    def close(self, m: int, grad_weights: Tensor) -> None:
        """Finish chunk m; `grad_weights` is what `step` returned for W, after all gradients were added to it."""
        assert self.grad is not None
        if self.plan.to_start and m:
            self._add_to_start(grad_weights)
            self.grad.select(1, 0).add_(grad_weights)
        elif self.plan.live and m == 0:
            self._add_to_start(self.grad[:, 0])

    def _add_to_start(self, grad: Tensor) -> None:
        self.grad_start += shared(self.grad_start, grad).sum(1)

    def _add_kept(self, m: int) -> None:
        if self.grad_kept is None or m not in self.plan.keep:
            return
        own = self.grad_kept[:, self.plan.keep.index(m)]
        if self.grad is None:
            self.grad = own.unsqueeze(1).clone()  # a copy, since it is added to
        else:
            self.grad[:, 0] += own
        if self.plan.to_start:
            self._add_to_start(own)


def _moved(start: Tensor, moved: Tensor) -> Tensor:
    return (shared(start, moved) + start.unsqueeze(1)).flatten(0, 1)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W, for `x` [X, C, i] and `weight` [X, i, o], or [F, i, o] if adjacent sequences share a matrix."""
    F = weight.shape[0]
    if x.shape[0] == F:
        return torch.bmm(x, weight)
    return torch.bmm(x.reshape(F, -1, x.shape[2]), weight).view(*x.shape[:2], -1)


def outer(narrow: Tensor, wide: Tensor, into: Tensor) -> None:
    """Add the sum of narrow wide^T over tokens (and over sequences that share a matrix) to `into`, [X or F, n, w]."""
    if narrow.shape[0] != into.shape[0]:
        narrow, wide = (x.reshape(into.shape[0], -1, x.shape[2]) for x in (narrow, wide))
    into.baddbmm_(narrow.mT, wide)


def shared(start: Tensor, each: Tensor) -> Tensor:
    """Return `each` [X, ...] as [F, X / F, ...], where F is the first size of `start`."""
    return each.unflatten(0, (start.shape[0], -1))


def scaled(x: Tensor, factors: Tensor | None) -> Tensor:
    """Return each token's vector [X, J, n], once for each slot, times the slot's factor [X, J, s]: [X, J, s * n]."""
    return x if factors is None else (x.unsqueeze(2) * factors.unsqueeze(3)).flatten(2)


def summed(t: Tensor, factors: Tensor | None) -> Tensor:
    """Return the transpose of `scaled`, [X, J, n], from `t` [X, J, s * n]."""
    if factors is None:
        return t
    parts, own = t.chunk(factors.shape[2], 2), factors.split(1, 2)
    total = parts[0] * own[0]
    for part, factor in zip(parts[1:], own[1:], strict=True):
        total.addcmul_(part, factor)
    return total


def dots(t: Tensor, x: Tensor, slots: int) -> Tensor:
    """Return the gradient of `factors` [X, J, s]: the products of each slot's part of `t` with the token's `x`."""
    return (t.unflatten(2, (slots, -1)) * x.unsqueeze(2)).sum(3)


def stacked(forths: Sequence[Forth]) -> list[Tensor]:
    """Return the kept weights of each layer, [X, len(keep), n, w]; layers that keep none are left out."""
    kept = [forth.kept for forth in forths if forth.kept]
    return [each[0].unsqueeze(1) if len(each) == 1 else torch.stack(each, 1) for each in kept]

"""Every token's own weights, formed and read a few tokens at a time.

Token t of a chunk has logits Z_t = A_t Z + sum_{j <= t} c_tj u_j k_j^T and weights W_t = K sinh Z_t / sum cosh Z_t; its
output is W_t q_t. Shapes: M chunks, X folded batch, r rows of both taken at once, C tokens in a chunk, J is C, or C + 1
with what was carried in before them, K key width, V value width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.kernels.dispatch import costs

#: Logits up to here need no shift before they are exponentials, in fp32 and with their sums over a row.
SAFE = 60.0


def read(q: Tensor, starts: Tensor | None, decay: Tensor, writes: Tensor, k: Tensor, updates: Tensor) -> Tensor:
    """[M, X, C, V] of q and k [M, X, C, K], `starts` Z [M, X, V, K] (None is zero), `decay` A [M, X, C], `writes` c
    [M, X, C, C], zero above the diagonal, `updates` u [M, X, C, V]. First derivatives only."""
    rows = [x if x is None else x.flatten(0, 1).contiguous() for x in (q, starts, decay, writes, k, updates)]
    y: Tensor = _Read.apply(*rows)  # type: ignore[no-untyped-call]
    return y.unflatten(0, q.shape[:2])


class _Read(torch.autograd.Function):
    """With S = sinh Z, P = cosh Z, D = sum P and h = dy / D: dq = K S^T h, dZ = h (K P q^T - y S)."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, starts: Tensor | None, decay: Tensor, writes: Tensor, k: Tensor, updates: Tensor
    ) -> Tensor:
        safe = _are_safe(starts, decay, writes, k, updates)
        mixed = writes if starts is None else torch.cat((decay.unsqueeze(-1), writes), -1)
        y, totals = torch.empty_like(updates), torch.empty_like(updates)
        for rows, part in _parts(mixed, k, updates):
            part.form(starts, mixed, k, updates, rows, safe)
            torch.sum(part.cosh, -1, out=totals[rows])
            torch.sum(part.sinh.mul_(q[rows].unsqueeze(-2)), -1, out=y[rows])
        y.mul_(q.shape[-1]).div_(totals)
        ctx.safe = safe
        ctx.save_for_backward(q, starts, mixed, k, updates, y, totals)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, starts, mixed, k, updates, y, totals = ctx.saved_tensors
        heights, against = grads[0] * q.shape[-1] / totals, y / -q.shape[-1]
        grad_q, grad_mixed, grad_k, grad_u = (torch.empty_like(x) for x in (q, mixed, k, updates))
        grad_starts = None if starts is None else torch.empty_like(starts)
        for rows, part in _parts(mixed, k, updates):
            part.form(starts, mixed, k, updates, rows, ctx.safe)
            height = heights[rows].unsqueeze(-1)
            grad = part.cosh.mul_(q[rows].unsqueeze(-2)).addcmul_(part.sinh, against[rows].unsqueeze(-1)).mul_(height)
            torch.sum(part.sinh.mul_(height), -2, out=grad_q[rows])
            torch.bmm(grad.flatten(2), part.pairs.flatten(2).mT, out=grad_mixed[rows])
            torch.bmm(mixed[rows].mT, grad.flatten(2), out=part.pairs.flatten(2))
            if grad_starts is not None:
                grad_starts[rows] = part.pairs[:, 0]
            torch.sum(torch.mul(part.writes, k[rows].unsqueeze(-2), out=part.sinh), -1, out=grad_u[rows])
            torch.sum(part.writes.mul_(updates[rows].unsqueeze(-1)), -2, out=grad_k[rows])
        if grad_starts is None:
            return grad_q, None, None, grad_mixed, grad_k, grad_u
        return grad_q, grad_starts, grad_mixed[..., 0], grad_mixed[..., 1:], grad_k, grad_u


@dataclass(frozen=True)
class _Part:
    """Memory that is used again for every few rows: `pairs` [r, J, V, K], Z before the chunk, if any, and u k^T of its
    tokens; `sinh` and `cosh` of their logits [r, C, V, K], of each row of W up to one common factor."""

    pairs: Tensor
    sinh: Tensor
    cosh: Tensor
    other: Tensor

    @property
    def writes(self) -> Tensor:
        """[r, C, V, K]: what belongs to the chunk's own tokens."""
        return self.pairs[:, -self.sinh.shape[1] :]

    def form(self, starts: Tensor | None, mixed: Tensor, k: Tensor, updates: Tensor, rows: slice, safe: bool) -> None:
        if starts is not None:
            self.pairs[:, 0] = starts[rows]
        if torch.compiler.is_compiling():  # which does not write a product into a part of a tensor
            self.writes.copy_(updates[rows].unsqueeze(-1) * k[rows].unsqueeze(-2))
        else:
            torch.mul(updates[rows].unsqueeze(-1), k[rows].unsqueeze(-2), out=self.writes)
        up, down = self.other, self.cosh
        torch.bmm(mixed[rows], self.pairs.flatten(2), out=up.flatten(2))
        if safe:
            torch.reciprocal(up.exp_(), out=down)
        else:
            top = up.abs().amax(-1, keepdim=True)
            torch.neg(up, out=down).sub_(top).exp_()
            up.sub_(top).exp_()
        torch.sub(up, down, out=self.sinh)
        self.cosh.add_(up)


def _parts(mixed: Tensor, k: Tensor, updates: Tensor) -> Iterator[tuple[slice, _Part]]:
    """As many rows at once as a device likes, and memory for them."""
    (rows, C, K), V, J = k.shape, updates.shape[-1], mixed.shape[-1]
    step = min(rows, max(1, costs(k.device.type).numbers // (C * V * K)))
    whole = k.new_empty(step, J, V, K), *(k.new_empty(step, C, V, K) for _ in range(3))
    for first in range(0, rows, step):
        yield slice(first, first + step), _Part(*(x[: rows - first] for x in whole))


def _are_safe(starts: Tensor | None, decay: Tensor, writes: Tensor, k: Tensor, updates: Tensor) -> bool:
    """Whether no logit's size is above SAFE, as far as that is known without waiting for a device. A sequence with
    something infinite, or no number, is lost on either way and must not choose the others'."""
    if k.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    pairs = k.abs().amax(-1) * updates.abs().amax(-1)
    bound = (writes.abs() @ pairs.unsqueeze(-1)).squeeze(-1)
    if starts is not None:
        bound = bound + decay * starts.abs().amax((-1, -2)).unsqueeze(-1)
    return torch.where(bound.isfinite(), bound, 0.0).max().item() < SAFE

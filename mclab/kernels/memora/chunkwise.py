"""Memora in chunks: `write` returns the logits carried into each chunk, `read` reads token t with the weights W_t.

The gradients of both are by hand. `Retention` is a `Source` of kernels/fastweight/chunkwise.py. Shapes: X folded batch
(sequences, heads and, where segments restart, segments), M chunks, C tokens in a chunk, K key width, V value width, J
is C, or C + 1 with what was carried in, r rows of X and M computed at once; logits Z and weights W [X, V, K].

See docs/equations.md#memora.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight.chunkwise import Layer, OneLayer
from mclab.kernels.fastweight.online import Slots
from mclab.kernels.fastweight.rates import Coefficients
from mclab.kernels.fastweight.steps import at_ends

#: Logits up to this size need no shift before the exponential: in fp32, neither it nor its sums over a row overflow.
SAFE = 60.0


class FormedLayer(Layer):
    """A layer whose slots, inputs and updates make logits instead of weights. `kept` has weights."""

    def online(self, x: Tensor) -> Tensor:
        """See `Layer.online`."""
        starts, decay = self.slots.values, self.slots.factors
        assert decay is not None
        starts = None if starts is None else starts.squeeze(2)
        return read(x, starts, decay.squeeze(-1), self.writes, self.inputs, self.updates)


@dataclass(frozen=True)
class Retention(OneLayer):
    """A sequence written by descent of |W k - v|^2 in the logits, from zero.

    The gradients of a chunk are taken at the weights that it began with. `keys` are [M, X, C, K], `values`
    [M, X, C, V]. `ends[m]` is the index of the last token of chunk m; `keep` lists the chunks whose final weights are
    wanted. The coefficients have a decay and no momentum.
    """

    keys: Tensor
    values: Tensor
    coefficients: Coefficients
    ends: Sequence[int]
    keep: Sequence[int]

    def layers(self) -> list[Layer]:
        """See `Source.layers`. There is one layer."""
        decay, writes = self.coefficients.decay, self.coefficients.writes
        assert decay is not None
        ends, last = at_ends(writes, self.ends), at_ends(decay, self.ends)
        starts, updates, kept = write(self.keys, self.values, ends, last, self.keep)
        carried = starts.unsqueeze(2) if len(self.ends) > 1 else None
        slots = Slots(carried, decay.unsqueeze(-1), widens=False, live=0)
        return [FormedLayer(slots, self.keys, updates, writes, None, kept)]


def write(
    k: Tensor, v: Tensor, ends: Tensor, decay: Tensor, keep: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Write a sequence into the logits Z, chunk after chunk, from Z = 0.

    Returns the logits that each chunk starts with [M, X, V, K], every token's u [M, X, C, V], and the weights after the
    chunks in `keep` [X, len(keep), V, K], None if there are none. All tokens of a chunk descend at the weights W that
    the chunk began with, so that it ends with Z' = A Z + sum_j e_j u_j k_j^T, u_j = 2 (v_j - W k_j). The arguments are
    keys [M, X, C, K], values [M, X, C, V], `ends` e [M, X, C] and `decay` A [M, X]. First derivatives only.
    """
    starts, updates, *kept = _Write.apply(k, v, ends, decay, tuple(keep))  # type: ignore[no-untyped-call]
    return starts, updates, torch.stack(kept, 1) if kept else None


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, k: Tensor, v: Tensor, ends: Tensor, decay: Tensor, keep: tuple[int, ...]
    ) -> tuple[Tensor, ...]:
        M, X, _, K = k.shape
        last = M if M - 1 in keep else M - 1
        logits = k.new_zeros(last + 1, X, v.shape[-1], K)
        updates, kept = 2 * v, []
        for m in range(M):
            if m:
                updates[m].baddbmm_(k[m], _Formed(logits[m]).weights().mT, alpha=-2)
            if m < last:
                pushed = (updates[m] * ends[m].unsqueeze(-1)).mT
                torch.baddbmm(logits[m] * decay[m, :, None, None], pushed, k[m], out=logits[m + 1])
            if m in keep:
                kept.append(_Formed(logits[m + 1]).weights())
        ctx.keep = keep
        ctx.save_for_backward(k, ends, decay, logits, updates)
        return logits[:M], updates, *kept

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        k, ends, decay, logits, updates = ctx.saved_tensors
        grad_starts, grad_updates, *grad_kept = grads
        kept = dict(zip(ctx.keep, grad_kept, strict=True))
        made = grad_k, grad_v, grad_ends, grad_decay = [torch.zeros_like(x) for x in (k, updates, ends, decay)]
        last = len(logits) - 1
        #: The gradient of the logits at the end of chunk m.
        grad = None if last < len(k) else _Formed(logits[last]).backward(kept[last - 1])
        for m in reversed(range(len(k))):
            grad_u = grad_updates[m]
            if grad is not None:
                pushed = k[m] @ grad.mT
                grad_ends[m] = torch.linalg.vecdot(updates[m], pushed)
                grad_u = torch.addcmul(grad_u, pushed, ends[m].unsqueeze(-1))
                grad_k[m] = (updates[m] * ends[m].unsqueeze(-1)) @ grad
                grad_decay[m] = torch.linalg.vecdot(grad.flatten(1), logits[m].flatten(1))
            torch.mul(grad_u, 2, out=grad_v[m])
            if m == 0:
                break
            carried = grad_starts[m] if grad is None else torch.addcmul(grad_starts[m], grad, decay[m, :, None, None])
            formed, grad_weights = _Formed(logits[m]), -(grad_v[m].mT @ k[m])
            grad_k[m].baddbmm_(grad_v[m], formed.weights(), alpha=-1)
            grad = carried + formed.backward(grad_weights + kept[m - 1] if m - 1 in kept else grad_weights)
        return *made, None


class _Formed:
    """W = K sinh Z / sum cosh Z of logits [X, V, K]; see recurrent.formed."""

    def __init__(self, logits: Tensor) -> None:
        top = logits.abs().amax(-1, keepdim=True)
        up, down = torch.exp(logits - top), torch.exp(-logits - top)
        self._sinh, self._cosh = up - down, up.add_(down)
        self._scale = logits.shape[-1] / self._cosh.sum(-1, keepdim=True)

    def weights(self) -> Tensor:
        return self._sinh * self._scale

    def backward(self, grad: Tensor) -> Tensor:
        """Return the gradient of Z from that of W: dZ = (K cosh Z dW - sinh Z sum_j dW W) / sum cosh Z."""
        pulled = (grad * self._sinh).sum(-1, keepdim=True) * (self._scale / grad.shape[-1])
        return (self._cosh * grad).addcmul_(self._sinh, pulled, value=-1).mul_(self._scale)


def read(q: Tensor, starts: Tensor | None, decay: Tensor, writes: Tensor, k: Tensor, updates: Tensor) -> Tensor:
    """Return W_t q_t of every token t, [M, X, C, V], with weights that are formed for a few tokens at a time.

    Token t of a chunk has logits Z_t = A_t Z + sum_{j <= t} c_tj u_j k_j^T and weights W_t = K sinh Z_t / sum cosh Z_t.
    q and k are [M, X, C, K], `starts` Z [M, X, V, K] (None means zero), `decay` A [M, X, C], `writes` c [M, X, C, C],
    zero above the diagonal, `updates` u [M, X, C, V]. First derivatives only.
    """
    rows = [x if x is None else x.flatten(0, 1).contiguous() for x in (q, starts, decay, writes, k, updates)]
    y: Tensor = _Read.apply(*rows)  # type: ignore[no-untyped-call]
    return y.unflatten(0, q.shape[:2])


class _Read(torch.autograd.Function):
    """y = K S q / D, where S = sinh Z, P = cosh Z, D [V] is the sum of P over the key width, which is the number K.

    Backward, with h = dy / D: dq = K S^T h, and dZ[v, i] = h[v] (K P[v, i] q[i] - y[v] S[v, i]).
    """

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
    """Buffers that every few rows use again.

    `pairs` [r, J, V, K] has Z before the chunk, if there is any, and u k^T of the chunk's tokens. `sinh` and `cosh` [r,
    C, V, K] are those of the tokens' logits, up to a common factor for each row of W.
    """

    pairs: Tensor
    sinh: Tensor
    cosh: Tensor
    other: Tensor

    @property
    def writes(self) -> Tensor:
        """Return the part of `pairs` that belongs to the tokens of the chunk, [r, C, V, K]."""
        return self.pairs[:, -self.sinh.shape[1] :]

    def form(self, starts: Tensor | None, mixed: Tensor, k: Tensor, updates: Tensor, rows: slice, safe: bool) -> None:
        if starts is not None:
            self.pairs[:, 0] = starts[rows]
        if torch.compiler.is_compiling():  # the compiler does not write a product into a part of a tensor
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
    """Yield the rows in slices, as many at once as is best for the device, with the buffers for them."""
    (rows, C, K), V, J = k.shape, updates.shape[-1], mixed.shape[-1]
    step = min(rows, max(1, costs(k.device.type).numbers // (C * V * K)))
    whole = k.new_empty(step, J, V, K), *(k.new_empty(step, C, V, K) for _ in range(3))
    for first in range(0, rows, step):
        yield slice(first, first + step), _Part(*(x[: rows - first] for x in whole))


def _are_safe(starts: Tensor | None, decay: Tensor, writes: Tensor, k: Tensor, updates: Tensor) -> bool:
    """Return whether all logits are known to be smaller than SAFE, without waiting for a device.

    A sequence with infinite values or NaN is lost in both cases, and must not decide for the rest of the batch.
    """
    if k.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    pairs = k.abs().amax(-1) * updates.abs().amax(-1)
    bound = (writes.abs() @ pairs.unsqueeze(-1)).squeeze(-1)
    if starts is not None:
        bound = bound + decay * starts.abs().amax((-1, -2)).unsqueeze(-1)
    return torch.where(bound.isfinite(), bound, 0.0).max().item() < SAFE

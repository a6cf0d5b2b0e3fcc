"""Memora along a sequence, chunk after chunk: the logits carried into each chunk, and back by hand.

All tokens of a chunk descend at the weights W that the chunk began with, so the chunk's end is
Z' = A Z + sum_j e_j u_j k_j^T with u_j = 2 (v_j - W k_j). Shapes: M chunks, X folded batch, C tokens in a chunk, K key
width, V value width; logits and weights [X, V, K].
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def write(
    k: Tensor, v: Tensor, ends: Tensor, decay: Tensor, keep: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor | None]:
    """From keys [M, X, C, K], values [M, X, C, V], `ends` e [M, X, C] and `decay` A [M, X], from Z = 0.

    The logits that each chunk starts with [M, X, V, K], every token's u [M, X, C, V], and the weights after the chunks
    of `keep` [X, len(keep), V, K], None where there are none. First derivatives only.
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
        """The gradient of Z from that of W: dZ = (K cosh Z dW - sinh Z sum_j dW W) / sum cosh Z."""
        pulled = (grad * self._sinh).sum(-1, keepdim=True) * (self._scale / grad.shape[-1])
        return (self._cosh * grad).addcmul_(self._sinh, pulled, value=-1).mul_(self._scale)

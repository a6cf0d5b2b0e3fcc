"""This module launches the kernels of the (gated) delta rule for torch: one launch forward and one backward.

The number of launches does not depend on the number of chunks. The result is that of `Scalar(...).read` in
chunkwise.py. Shapes as in chunkwise.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.kernels.delta.triton import backward, forward
from mclab.kernels.fastweight.rates import Rates
from mclab.kernels.launch import launch, power_of_two

#: By padded width (the larger of K and V): how many warps compute a program, and how far ahead its loop loads.
SCHEDULE = {16: (4, 1), 32: (4, 1), 64: (8, 1)}


def read(
    q: Tensor, k: Tensor, v: Tensor, rates: Rates, keep: Sequence[int], start: Tensor | None = None, low: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return y [M, X, C, V] and the states after the chunks in `keep` [X, len(keep), V, K], None if `keep` is empty.

    q and k are [M, X, C, K], v [M, X, C, V], `rates` beta and log alpha [M, X, C], `start` S_0 [X, V, K] (None means
    0). With `low`, products are in tf32; else they are in fp32. First derivatives only.
    """
    first = None if start is None else start.mT
    y, *kept = _Read.apply(q, k, v, rates.eta, rates.log_alpha, first, tuple(keep), low)  # type: ignore[no-untyped-call]
    return y, kept[0].mT if kept else None


def constants(K: int, V: int, C: int, gated: bool, start: bool, low: bool, double: bool) -> dict[str, Any]:
    """Return the compile-time arguments that both kernels have."""
    import triton.language as tl

    return {
        "K": K, "V": V, "KP": power_of_two(K, 16), "VP": power_of_two(V, 16), "CP": power_of_two(C, 16),
        "GATED": gated, "START": start, "IP": "tf32" if low else "ieee", "SUM": tl.float64 if double else tl.float32,
    }  # fmt: skip


def schedule(K: int, V: int) -> dict[str, int]:
    """Return the launch options of a program: the number of its warps and of its pipeline stages."""
    warps, stages = SCHEDULE[power_of_two(max(K, V), 16)]
    return {"num_warps": warps, "num_stages": stages}


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, logs: Tensor | None, start: Tensor | None,
        keep: tuple[int, ...], low: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        q, k, v, beta = (x.contiguous() for x in (q, k, v, beta))
        logs, start = (x if x is None else x.contiguous() for x in (logs, start))
        (M, X, C, K), V, last = q.shape, v.shape[-1], q.shape[0] - 1 in keep
        known = constants(K, V, C, logs is not None, start is not None, low, q.dtype == torch.float64)
        states, y = q.new_empty(M + last, X, K, V), torch.empty_like(v)
        given = (q, k, v, beta, _or(logs, q), _or(start, q))
        launch(forward.forward, (X,), q, *given, states, y, M, X, C, **known, LAST=last, **schedule(K, V))
        ctx.keep, ctx.known, ctx.sizes = keep, known, (M, X, C)
        ctx.save_for_backward(q, k, v, beta, logs, start, states)
        if not keep:
            return (y,)
        after = integers(tuple(m + 1 for m in keep), q.device)
        return y, states.index_select(0, after).transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, beta, logs, start, states = ctx.saved_tensors
        keep, known = ctx.keep, ctx.known
        dy, *dkept = (x.contiguous() for x in grads)
        made = [x if x is None else torch.empty_like(x) for x in (q, k, v, beta, logs, start)]
        places = integers(tuple(keep.index(m) if m in keep else -1 for m in range(ctx.sizes[0])), q.device)
        given = (q, k, v, beta, _or(logs, q), states, dy, places, dkept[0] if keep else q)
        written = [_or(x, q) for x in made]
        launch(
            backward.backward, (ctx.sizes[1],), q, *given, *written, *ctx.sizes, len(keep), **known,
            KEEPS=bool(keep), **schedule(known["K"], known["V"]),
        )  # fmt: skip
        return *made, None, None


def _or(x: Tensor | None, other: Tensor) -> Tensor:
    """Return `x`, or `other` if `x` is None: a kernel needs some tensor, even for an argument that it does not read."""
    return other if x is None else x

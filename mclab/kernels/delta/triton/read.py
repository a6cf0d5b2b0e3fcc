"""The kernels of the (gated) delta rule for torch: three launches forward, three backward, however many
chunks there are.

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
    """The compile-time arguments of all kernels."""
    import triton.language as tl

    return {
        "K": K, "V": V, "KP": power_of_two(K, 16), "VP": power_of_two(V, 16), "CP": power_of_two(C, 16),
        "GATED": gated, "START": start, "IP": "tf32" if low else "ieee", "SUM": tl.float64 if double else tl.float32,
    }  # fmt: skip


def start_programs(kernel: Any, count: int, known: dict[str, Any], *given: Any, **more: Any) -> None:
    """Launch `count` programs with the compile-time arguments that the kernel has, of those that are `known`."""
    warps, stages = SCHEDULE[max(known["KP"], known["VP"])]
    own = {name: value for name, value in known.items() if name in kernel.arg_names}
    launch(kernel, (count,), given[0], *given, **own, **more, num_warps=warps, num_stages=stages)


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
        states, y, rates = q.new_empty(M + last, X, K, V), torch.empty_like(v), (beta, _or(logs, q))
        w, e = torch.empty_like(k), torch.empty_like(v)
        start_programs(forward.prepare, M * X, known, k, v, *rates, w, e, C)
        start_programs(forward.states, X, known, k, *rates, _or(start, q), w, e, states, M, X, C, LAST=last)
        start_programs(forward.reads, M * X, known, q, k, *rates, states, e, y, C)
        ctx.keep, ctx.known = keep, known
        ctx.save_for_backward(q, k, v, beta, logs, start, states)
        if not keep:
            return (y,)
        after = integers(tuple(m + 1 for m in keep), q.device)
        return y, states.index_select(0, after).transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, beta, logs, start, states = ctx.saved_tensors
        keep, known, (M, X, C, K), rates = ctx.keep, ctx.known, q.shape, (beta, _or(logs, q))
        dy, *dkept = (x.contiguous() for x in grads)
        made = [x if x is None else torch.empty_like(x) for x in (q, k, v, beta, logs, start)]
        dq, dk, dv, dbeta, dlogs, dstart = (_or(x, q) for x in made)
        # Names as in the kernels: what one leaves to the next.
        e, n, of_states = torch.empty_like(v), torch.empty_like(k), q.new_empty(M + 1, X, K, v.shape[-1])
        start_programs(
            backward.prepare_backward, M * X, known, q, k, v, *rates, states, dy, e, n, dv, of_states, C
        )  # fmt: skip
        places = integers(tuple(keep.index(m) if m in keep else -1 for m in range(M)), q.device)
        start_programs(
            backward.states_backward, X, known, k, *rates, places, dkept[0] if keep else q, n, dv, of_states, dstart,
            M, X, C, len(keep), KEEPS=bool(keep),
        )  # fmt: skip
        start_programs(
            backward.tokens_backward, M * X, known, q, k, *rates, states, dy, e, dv, of_states, dq, dk, dbeta, dlogs,
            X, C,
        )  # fmt: skip
        return *made, None, None


def _or(x: Tensor | None, other: Tensor) -> Tensor:
    """Return `x`, or `other` if `x` is None: a kernel needs some tensor, even for an argument that it does not read."""
    return other if x is None else x

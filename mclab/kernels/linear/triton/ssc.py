"""The Flash-SSC kernels for torch: one launch forward, two backward.

Shapes: G = R*B*H folded, T time, K key width, V value width, S segment length, N segments, J segments that a token
reads, its own among them.
"""

from typing import Any

import torch
from torch import Tensor

from mclab.kernels.launch import launch, power_of_two
from mclab.kernels.linear.triton import weighted
from mclab.kernels.linear.triton.grm import schedule, tile, tiles_of_columns


def weighted_read(
    q: Tensor, k: Tensor, v: Tensor, weights: Tensor, chosen: Tensor | None, segment: int, low: bool = False
) -> Tensor:
    """[G, T, V]: y_t = sum_n w_t^(n) sum_{j in n, j <= t} (q_t . k_j) v_j.

    `weights` [G, T, J] are those of the segments `chosen` [G, T, J] (integers); a segment that is named twice counts
    twice. With `chosen=None` weights are [G, T, N] (or [T, N]), one for each segment. T may have any value. `low`
    multiplies in bf16 and adds in fp32; else fp32 stays fp32, without tf32. First derivatives only.
    """
    weights = weights.expand(len(q), -1, -1)
    made: Tensor = _WeightedRead.apply(q, k, v, weights, chosen, segment, low)  # type: ignore[no-untyped-call]
    return made


def constants(K: int, V: int, segment: int, choices: int, low: bool, double: bool) -> dict[str, Any]:
    """The compile-time arguments of all three kernels; `choices` is J, and 0 where every segment has a weight."""
    import triton.language as tl

    rows, columns, *_ = tile(max(K, V), low)
    many = segment <= columns
    return {
        "K": K, "V": V, "KP": power_of_two(K, 16), "VP": power_of_two(V, 16), "BT": rows, "BN": columns,
        "SP": power_of_two(segment) if many else columns, "MANY": many, "J": choices, "JP": power_of_two(choices, 1),
        "IP": "ieee", "SUM": tl.float64 if double else tl.float32,
    }  # fmt: skip


class _WeightedRead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, weights: Tensor, chosen: Tensor | None, segment: int, low: bool
    ) -> Tensor:
        q, k, v = ((x.bfloat16() if low else x).contiguous() for x in (q, k, v))
        weights = weights.contiguous()
        chosen = chosen if chosen is None else chosen.to(torch.int32).contiguous()
        (G, T, K), V, last = q.shape, v.shape[-1], weights.shape[-1]
        known = constants(K, V, segment, last if chosen is not None else 0, low, q.dtype == torch.float64)
        ctx.numbers, ctx.known, ctx.schedule = (T, segment, last), known, schedule(tile(max(K, V), low))
        y = torch.empty_like(v, dtype=torch.float32 if low else q.dtype)
        given, grid = (q, k, v, weights, q if chosen is None else chosen), (G, -(-T // known["BT"]))
        launch(weighted.weighted_forward, grid, q, *given, y, *ctx.numbers, **known, **ctx.schedule)
        ctx.save_for_backward(q, k, v, weights, chosen)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, chosen = ctx.saved_tensors
        (G, T, _), known = q.shape, ctx.known
        dy = grads[0].to(q.dtype).contiguous()
        dq, dk, dv = (torch.empty_like(x, dtype=grads[0].dtype) for x in (q, k, v))
        # Segments that a token does not see are not written, if each has a weight.
        dweights = torch.zeros_like(weights) if chosen is None else torch.empty_like(weights)
        given, rest = (q, k, v, weights, q if chosen is None else chosen, dy), {**known, **ctx.schedule}
        rows, columns = -(-T // known["BT"]), tiles_of_columns(T, ctx.numbers[1], known)
        launch(weighted.weighted_rows_backward, (G, rows), q, *given, dq, dweights, *ctx.numbers, **rest)
        launch(weighted.weighted_columns_backward, (G, columns), q, *given, dk, dv, *ctx.numbers, **rest)
        return dq, dk, dv, dweights, None, None, None

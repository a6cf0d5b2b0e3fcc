"""This module launches the Flash-GRM kernels for torch: one launch forward and two backward.

No tensor of tokens times segments is in memory. Shapes: G = R*B*H folded, T time, K key width, V value width, S segment
length, N segments.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mclab.kernels.launch import launch, power_of_two
from mclab.kernels.linear.gate import Gate
from mclab.kernels.linear.triton import backward, forward


class Tile(NamedTuple):
    """The rows and columns of a tile, the warps that compute it, and how many iterations ahead a loop loads."""

    rows: int
    columns: int
    warps: int
    stages: int


#: The tiles by padded width (the larger of K and V), for fp32, whose products are exact and use no tensor core, and for
#: bf16. It is a table without autotuning: so the choice is the same on every machine, and kernels can be compiled
#: without a device. These are the largest tiles for which the registers suffice (`python -m benchmarks compile`).
FP32 = {16: Tile(16, 32, 4, 1), 32: Tile(16, 16, 4, 1), 64: Tile(16, 16, 4, 1)}
BF16 = {16: Tile(32, 32, 4, 2), 32: Tile(32, 32, 4, 1), 64: Tile(32, 32, 4, 2), 128: Tile(32, 32, 8, 2)}


def tile(width: int, low: bool) -> Tile:
    """Return the tile for a head of this width."""
    return (BF16 if low else FP32)[power_of_two(width, 16)]


def gated_read(q: Tensor, k: Tensor, v: Tensor, gate: Gate, segment: int, low: bool = False) -> Tensor:
    """Return y_t = sum_n gamma_t^(n) sum_{j in n, j <= t} (q_t . k_j) v_j, [G, T, V].

    T may have any value: the last segment may be short. With `low`, products are in bf16 and sums in fp32; else both
    are in fp32, without tf32. First derivatives only.
    """
    made: Tensor = _GatedRead.apply(  # type: ignore[no-untyped-call]
        q, k, v, gate.u, gate.pooled, gate.logits, gate.scale, gate.mean, segment, low
    )
    return made


def constants(K: int, V: int, segment: int, kind: int, mean: bool, low: bool, double: bool) -> dict[str, Any]:
    """Return the compile-time arguments of all three kernels; `kind` is NONE, CONTEXT or INPUT of tiles.py."""
    import triton.language as tl

    KP, VP = power_of_two(K, 16), power_of_two(V, 16)
    rows, columns, *_ = tile(max(K, V), low)
    many = kind == 0 or segment <= columns
    SP = power_of_two(segment) if many and kind else columns
    sums = tl.float64 if double else tl.float32
    return {
        "K": K, "V": V, "KP": KP, "VP": VP, "BT": rows, "BN": columns, "SP": SP, "MANY": many, "GATE": kind,
        "MEAN": mean, "IP": "ieee", "SUM": sums,
    }  # fmt: skip


class _GatedRead(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, u: Tensor | None, p: Tensor | None, logits: Tensor | None,
        scale: float, mean: bool, segment: int, low: bool,
    ) -> Tensor:  # fmt: skip
        q, k, v = (_laid(x, low) for x in (q, k, v))
        u, p = (x if x is None else _laid(x, low) for x in (u, p))
        (G, T, K), V, kind = q.shape, v.shape[-1], 1 if u is not None else 2 if logits is not None else 0
        known = constants(K, V, segment, kind, mean, low, q.dtype == torch.float64)
        S = segment if kind else known["BN"]
        logits = logits if logits is None else logits.contiguous()
        N = 0 if logits is None else logits.shape[-1]
        sums = torch.float32 if low else q.dtype
        y = torch.empty_like(v, dtype=sums)
        lse = torch.empty(G, T, dtype=sums, device=q.device)
        ctx.numbers, ctx.known, ctx.schedule = (T, S, N, scale), known, schedule(tile(max(K, V), low))
        grid = (G, -(-T // known["BT"]))
        given = (q, k, v, q if u is None else u, q if p is None else p, q if logits is None else logits)
        launch(forward.forward, grid, q, *given, y, lse, *ctx.numbers, **known, **ctx.schedule)
        ctx.save_for_backward(q, k, v, u, p, logits, y, lse)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, u, p, logits, y, lse = ctx.saved_tensors
        (G, T, _), known, S = q.shape, ctx.known, ctx.numbers[1]
        dy = grads[0].to(q.dtype).contiguous()
        dq, dk, dv, du, dp, dlogits = (
            x if x is None else torch.empty_like(x, dtype=y.dtype) for x in (q, k, v, u, p, logits)
        )
        gate = (q if u is None else u, q if p is None else p, q if logits is None else logits)
        #: delta, gamma of t's own segment and its dr; unused without a gate.
        own = torch.empty(3, *lse.shape, dtype=lse.dtype, device=lse.device)
        made = (dq, dq if du is None else du, dq if dlogits is None else dlogits)
        launch(
            backward.rows_backward, (G, -(-T // known["BT"])), q,
            q, k, v, *gate, y, lse, dy, *made, *own, *ctx.numbers, **known, **ctx.schedule,
        )  # fmt: skip
        columns = (dk, dv, dk if dp is None else dp)
        launch(
            backward.columns_backward, (G, tiles_of_columns(T, S, known)), q,
            q, k, v, *gate, lse, dy, *own, *columns, *ctx.numbers, **known, **ctx.schedule,
        )  # fmt: skip
        return dq, dk, dv, du, dp, dlogits, None, None, None, None


def tiles_of_columns(T: int, S: int, known: dict[str, Any]) -> int:
    """Return the number of programs of the backward pass by columns, for one sequence and head."""
    segments, BN = -(-T // S), known["BN"]
    return -(-segments // (BN // known["SP"])) if known["MANY"] else segments * -(-S // BN)


def _laid(x: Tensor, low: bool) -> Tensor:
    return (x.bfloat16() if low else x).contiguous()


def schedule(own: Tile) -> dict[str, int]:
    """The arguments of a launch that say how a tile is computed."""
    return {"num_warps": own.warps, "num_stages": own.stages}

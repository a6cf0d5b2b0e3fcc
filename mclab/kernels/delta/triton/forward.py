"""This kernel is the forward pass of the (gated) delta rule.

One program goes through all chunks of a sequence and keeps the state on the chip. Shapes: M chunks, X sequences (with
heads, and segments where they restart), C tokens, K key width, V value width.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.delta.triton.chunk import decays, residuals
from mclab.kernels.tiles import product, put, tile


@triton.jit(do_not_specialize=["M", "X", "C"])
def forward(
    q, k, v, beta, logs, start, states, y, M, X, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    START: tl.constexpr, LAST: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read q and k [M, X, C, K], v [M, X, C, V], beta and logs [M, X, C], start [X, K, V]; write y and states.

    y is [M, X, C, V]; states [M (+ 1 if `LAST`), X, K, V] are those carried into each chunk.
    """
    x = tl.program_id(0).to(tl.int64)
    h = tl.zeros([KP, VP], SUM)
    if START:
        h = tile(start + x * K * V, K, V, KP, VP)
    for m in range(M):
        at = m * X + x
        put(states + at * K * V, h, K, V, KP, VP)
        q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
        b, between, decay, ends, last = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
        c = between * b[None, :]
        _, _, e = residuals(k_m, tile(v + at * C * V, C, V, CP, VP), h, c, decay, CP, IP, SUM)
        out = product(product(q_m, tl.trans(k_m), IP, SUM) * c, e, IP, SUM)
        out += product(q_m * decay[:, None], h, IP, SUM)
        put(y + at * C * V, out, C, V, CP, VP)
        h = h * last + product(tl.trans(k_m * ends[:, None]), e, IP, SUM)
    if LAST:
        put(states + (M * X + x) * K * V, h, K, V, KP, VP)

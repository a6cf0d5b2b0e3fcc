"""The (gated) delta rule, forward: what each chunk needs, then the states chunk after chunk, then all reads.

Equations of chunk.py. Shapes: M chunks, X sequences (with heads, and segments where they restart), C tokens, K key
width, V value width. Only the programs of `states` go through a sequence; those of the others compute one chunk of one
sequence and do not wait for each other.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.delta.triton.chunk import closing, decays, solution
from mclab.kernels.tiles import product, put, tile


@triton.jit(do_not_specialize=["C"])
def prepare(
    k, v, beta, logs, w, e, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read k [M, X, C, K], v [M, X, C, V], beta and logs [M, X, C]; write w = U A K and, in the place of e, U V."""
    at = tl.program_id(0).to(tl.int64)
    k_m = tile(k + at * C * K, C, K, CP, KP)
    b, between, decay = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
    _, solved = solution(k_m, between * b[None, :], CP, SUM)
    put(w + at * C * K, product(solved, k_m * decay[:, None], IP, SUM), C, K, CP, KP)
    put(e + at * C * V, product(solved, tile(v + at * C * V, C, V, CP, VP), IP, SUM), C, V, CP, VP)


@triton.jit(do_not_specialize=["M", "X", "C"])
def states(
    k, beta, logs, start, w, e, states, M, X, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    START: tl.constexpr, LAST: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read start [X, K, V]; write the states [M (+ 1 where `LAST`), X, K, V] carried into each chunk, and
    e = U V - w H."""
    x = tl.program_id(0).to(tl.int64)
    h = tl.zeros([KP, VP], SUM)
    if START:
        h = tile(start + x * K * V, K, V, KP, VP)
    for m in range(M):
        at = m * X + x
        put(states + at * K * V, h, K, V, KP, VP)
        _, ends, last = closing(beta + at * C, logs + at * C, C, CP, GATED, SUM)
        e_m = tile(e + at * C * V, C, V, CP, VP)
        e_m -= product(tile(w + at * C * K, C, K, CP, KP), h, IP, SUM)
        h = h * last + product(tl.trans(tile(k + at * C * K, C, K, CP, KP) * ends[:, None]), e_m, IP, SUM)
        # What is written over has been read by all threads.
        tl.debug_barrier()
        put(e + at * C * V, e_m, C, V, CP, VP)
    if LAST:
        put(states + (M * X + x) * K * V, h, K, V, KP, VP)


@triton.jit(do_not_specialize=["C"])
def reads(
    q, k, beta, logs, states, e, y, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read q [M, X, C, K]; write y [M, X, C, V]."""
    at = tl.program_id(0).to(tl.int64)
    q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
    b, between, decay = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
    scores = product(q_m, tl.trans(k_m), IP, SUM) * between * b[None, :]
    out = product(scores, tile(e + at * C * V, C, V, CP, VP), IP, SUM)
    out += product(q_m * decay[:, None], tile(states + at * K * V, K, V, KP, VP), IP, SUM)
    put(y + at * C * V, out, C, V, CP, VP)

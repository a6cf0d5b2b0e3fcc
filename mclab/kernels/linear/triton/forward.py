"""Flash-GRM, forward: y_t = sum_n gamma_t^(n) sum_{j in n, j <= t} (q_t . k_j) v_j.

gamma is the softmax over n of scale <u_t, pool_n> or of given logits, or 1. The softmax and the sum are computed
segment by segment, as in online softmax (Milakov & Gimelshein 2018, arXiv 1805.02867).
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.linear.triton.tiles import (
    CONTEXT,
    NONE,
    by_column,
    by_segment,
    factors,
    given_logits,
    load_columns,
    opened,
    pooled_upto,
    store,
    whole_tile,
)
from mclab.kernels.tiles import product


@triton.jit(do_not_specialize=["T", "S", "N"])
def forward(
    q, k, v, u, p, logits, y, lse, T, S, N, scale,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, GATE: tl.constexpr, MEAN: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Compute the gated read, with one program for each sequence and head and each BT tokens.

    It reads q, u, p and k [G, T, K], v [G, T, V] and logits [G, T, N], and writes y [G, T, V] and lse [G, T], the
    logarithm of the softmax's divisor.
    """
    NSEG: tl.constexpr = BN // SP
    g, rows, own, last, k, v, p, q_rows, u_rows = opened(q, k, v, u, p, T, S, K, V, KP, BT, GATE)
    top = tl.zeros([BT], SUM) - float("inf")
    total, acc = tl.zeros([BT], SUM), tl.zeros([BT, VP], SUM)
    if MANY:
        for n0 in range(0, last // S + 1, NSEG):
            token, known = whole_tile(n0, T, S, BN, SP)
            mask = known[None, :] & (token[None, :] <= rows[:, None])
            scores = tl.where(mask, product(q_rows, tl.trans(load_columns(k, token, known, K, KP)), IP, SUM), 0.0)
            if GATE != NONE:
                segments = n0 + tl.arange(0, NSEG)
                if GATE == CONTEXT:
                    each = product(u_rows, tl.trans(load_columns(p, token, known, K, KP)), IP, SUM)
                    r = by_segment(tl.where(mask, each, 0.0), BT, NSEG, SP) * factors(
                        segments, rows, S, scale, MEAN, SUM
                    )
                else:
                    r = given_logits(logits + g * T * N, rows, segments, T, N).to(SUM)
                r = tl.where(segments[None, :] <= own[:, None], r, -float("inf"))
                new = tl.maximum(top, tl.max(r, 1))
                rest, weights = tl.exp(top - new), tl.exp(r - new[:, None])
                total, acc, top = total * rest + tl.sum(weights, 1), acc * rest[:, None], new
                scores = scores * by_column(weights, BT, NSEG, SP)
            own_v = load_columns(v, token, known, V, VP)
            acc += product(scores.to(own_v.dtype), own_v, IP, SUM)
    else:
        first = (tl.program_id(1) * BT) // S
        for n in range(last // S + 1):
            read, sums = tl.zeros([BT, VP], SUM), tl.zeros([BT, KP], SUM)
            for b in range(0, tl.minimum(S, last + 1 - n * S), BN):
                place = b + tl.arange(0, BN)
                token = n * S + place
                known = (place < S) & (token < T)
                mask = known[None, :] & (token[None, :] <= rows[:, None])
                scores = tl.where(mask, product(q_rows, tl.trans(load_columns(k, token, known, K, KP)), IP, SUM), 0.0)
                own_v = load_columns(v, token, known, V, VP)
                read += product(scores.to(own_v.dtype), own_v, IP, SUM)
                if GATE == CONTEXT:
                    sums = pooled_upto(sums, load_columns(p, token, known, K, KP), mask, n < first, IP, SUM)
            one = n + tl.arange(0, 1)
            if GATE == CONTEXT:
                r = tl.sum(u_rows.to(SUM) * sums, 1)[:, None] * factors(one, rows, S, scale, MEAN, SUM)
            else:
                r = given_logits(logits + g * T * N, rows, one, T, N).to(SUM)
            r = tl.where(one[None, :] <= own[:, None], r, -float("inf"))
            new = tl.maximum(top, tl.max(r, 1))
            rest, weight = tl.exp(top - new), tl.exp(tl.max(r, 1) - new)
            total, top = total * rest + weight, new
            acc = acc * rest[:, None] + read * weight[:, None]
    if GATE != NONE:
        acc = acc / total[:, None]
        tl.store(lse + g * T + rows, top + tl.log(total), mask=rows < T)
    store(y + g * T * V, rows, rows < T, acc, V, VP)

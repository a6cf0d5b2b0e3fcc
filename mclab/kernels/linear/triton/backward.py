"""Flash-GRM, backward: one kernel by rows (dq, du, the gradient of logits), one by columns (dk, dv, dp); no atomics.

With lse from the forward pass, gamma = exp(r - lse) is known at once. dgamma_t^(n) is the sum over j in n of (q_t .
k_j) (dy_t . v_j), and dr = gamma (dgamma - delta) with delta_t = sum_n gamma dgamma = dy_t . y_t, as in FlashAttention.
Where a segment is wider than a tile, the kernel by rows computes dgamma_t^(n) as q_t times the segment's contribution
to dq_t before gamma, and r as u_t times the sum of the segment's keys. The kernel by columns computes gamma and dgamma
of a past segment from that sum and from the segment's state, the sum of k v^T; for t's own segment it loads what the
kernel by rows has stored.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.linear.triton.tiles import (
    CONTEXT,
    INPUT,
    NONE,
    by_column,
    by_segment,
    factors,
    given_logits,
    load,
    load_columns,
    opened,
    pooled_upto,
    store,
    whole_tile,
)
from mclab.kernels.tiles import product


@triton.jit(do_not_specialize=["T", "S", "N"])
def rows_backward(
    q, k, v, u, p, logits, y, lse, dy, dq, du, dlogits, delta, own_gamma, own_dr, T, S, N, scale,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, GATE: tl.constexpr, MEAN: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Compute dq, du and the gradient of logits; the programs are as in `forward`.

    delta, own_gamma and own_dr [G, T] are results for the kernel by columns: delta is dy . y; own_gamma and own_dr are,
    for t's segment, gamma and dr times the score's factor.
    """
    NSEG: tl.constexpr = BN // SP
    g, rows, own, last, k, v, p, q_rows, u_rows = opened(q, k, v, u, p, T, S, K, V, KP, BT, GATE)
    inside, dy_rows = rows < T, load(dy + g * T * V, rows, T, V, VP)
    along = tl.sum(dy_rows.to(SUM) * load(y + g * T * V, rows, T, V, VP).to(SUM), 1)
    divisor = along
    if GATE != NONE:
        divisor = tl.load(lse + g * T + rows, mask=inside, other=0.0)
        tl.store(delta + g * T + rows, along, mask=inside)
    acc_q, acc_u = tl.zeros([BT, KP], SUM), tl.zeros([BT, KP], SUM)
    if MANY:
        for n0 in range(0, last // S + 1, NSEG):
            token, known = whole_tile(n0, T, S, BN, SP)
            mask = known[None, :] & (token[None, :] <= rows[:, None])
            own_k = load_columns(k, token, known, K, KP)
            through = product(dy_rows, tl.trans(load_columns(v, token, known, V, VP)), IP, SUM)
            through = tl.where(mask, through, 0.0)
            if GATE != NONE:
                segments = n0 + tl.arange(0, NSEG)
                factor = factors(segments, rows, S, scale, MEAN, SUM)
                if GATE == CONTEXT:
                    own_p = load_columns(p, token, known, K, KP)
                    each = tl.where(mask, product(u_rows, tl.trans(own_p), IP, SUM), 0.0)
                    r = by_segment(each, BT, NSEG, SP) * factor
                else:
                    r = given_logits(logits + g * T * N, rows, segments, T, N).to(SUM)
                seen = (segments[None, :] <= own[:, None]) & inside[:, None]
                gamma = tl.where(seen, tl.exp(tl.where(seen, r - divisor[:, None], 0.0)), 0.0)
                scores = product(q_rows, tl.trans(own_k), IP, SUM)
                dr = gamma * (by_segment(scores * through, BT, NSEG, SP) - along[:, None])
                if GATE == CONTEXT:
                    pushed = tl.where(mask, by_column(dr * factor, BT, NSEG, SP), 0.0)
                    acc_u += product(pushed.to(own_p.dtype), own_p, IP, SUM)
                else:
                    at = dlogits + g * T * N + rows[:, None].to(tl.int64) * N + segments[None, :]
                    tl.store(at, dr, mask=inside[:, None] & (segments[None, :] < N))
                through = through * by_column(gamma, BT, NSEG, SP)
            acc_q += product(through.to(own_k.dtype), own_k, IP, SUM)
    else:
        first = (tl.program_id(1) * BT) // S
        for n in range(last // S + 1):
            pull, sums = tl.zeros([BT, KP], SUM), tl.zeros([BT, KP], SUM)
            for b in range(0, tl.minimum(S, last + 1 - n * S), BN):
                place = b + tl.arange(0, BN)
                token = n * S + place
                known = (place < S) & (token < T)
                mask = known[None, :] & (token[None, :] <= rows[:, None])
                through = product(dy_rows, tl.trans(load_columns(v, token, known, V, VP)), IP, SUM)
                own_k = load_columns(k, token, known, K, KP)
                pull += product(tl.where(mask, through, 0.0).to(own_k.dtype), own_k, IP, SUM)
                if GATE == CONTEXT:
                    sums = pooled_upto(sums, load_columns(p, token, known, K, KP), mask, n < first, IP, SUM)
            one = n + tl.arange(0, 1)
            factor = tl.max(factors(one, rows, S, scale, MEAN, SUM), 1)
            if GATE == CONTEXT:
                r = tl.sum(u_rows.to(SUM) * sums, 1) * factor
            else:
                r = tl.max(given_logits(logits + g * T * N, rows, one, T, N).to(SUM), 1)
            seen = (own >= n) & inside
            gamma = tl.where(seen, tl.exp(tl.where(seen, r - divisor, 0.0)), 0.0)
            dr = gamma * (tl.sum(q_rows.to(SUM) * pull, 1) - along)
            acc_q += pull * gamma[:, None]
            acc_u += sums * (dr * factor)[:, None]
            mine = inside & (own == n)
            tl.store(own_gamma + g * T + rows, gamma, mask=mine)
            tl.store(own_dr + g * T + rows, dr * factor, mask=mine)
            if GATE == INPUT:
                tl.store(dlogits + g * T * N + rows.to(tl.int64) * N + n, dr, mask=inside)
    if GATE == INPUT:  # segments that no row of the block sees
        tile: tl.constexpr = NSEG if MANY else 1
        for n0 in range((last // S // tile + 1) * tile, N, tile):
            segments = n0 + tl.arange(0, tile)
            at = dlogits + g * T * N + rows[:, None].to(tl.int64) * N + segments[None, :]
            zeros = tl.zeros([BT, tile], SUM)
            tl.store(at, zeros, mask=inside[:, None] & (segments[None, :] < N))
    store(dq + g * T * K, rows, inside, acc_q, K, KP)
    if GATE == CONTEXT:
        store(du + g * T * K, rows, inside, acc_u, K, KP)


@triton.jit(do_not_specialize=["T", "S", "N"])
def columns_backward(
    q, k, v, u, p, logits, lse, dy, delta, own_gamma, own_dr, dk, dv, dp, T, S, N, scale,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, GATE: tl.constexpr, MEAN: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Compute dk, dv and dp, with one program for each sequence and head and each tile of columns.

    A tile is NSEG segments, or a part of segment n.
    """
    NSEG: tl.constexpr = BN // SP
    g = tl.program_id(0).to(tl.int64)
    q, k, u, p, v, dy = q + g * T * K, k + g * T * K, u + g * T * K, p + g * T * K, v + g * T * V, dy + g * T * V
    if MANY:
        n = tl.program_id(1) * NSEG
        start = n * S
        token, known = whole_tile(n, T, S, BN, SP)
    else:
        tiles = tl.cdiv(S, BN)
        n = tl.program_id(1) // tiles
        start = n * S + tl.program_id(1) % tiles * BN
        token = start + tl.arange(0, BN)
        known = (token < (n + 1) * S) & (token < T)
    own_k, own_v = load_columns(k, token, known, K, KP), load_columns(v, token, known, V, VP)
    own_p = own_k
    if GATE == CONTEXT:
        own_p = load_columns(p, token, known, K, KP)
    state, sums = tl.zeros([KP, VP], SUM), tl.zeros([KP], SUM)
    if (not MANY) and GATE == CONTEXT:  # noqa: SIM102, which is known when it is compiled, the next is not
        if (n + 1) * S < T:
            for b in range(0, S, BN):
                place = b + tl.arange(0, BN)
                each = n * S + place
                there = place < S
                state += product(
                    tl.trans(load_columns(k, each, there, K, KP)), load_columns(v, each, there, V, VP), IP, SUM
                )
                sums += tl.sum(load_columns(p, each, there, K, KP).to(SUM), 0)
    acc_k, acc_v, acc_p = tl.zeros([BN, KP], SUM), tl.zeros([BN, VP], SUM), tl.zeros([BN, KP], SUM)
    for t0 in range(start // BT * BT, T, BT):
        rows = t0 + tl.arange(0, BT)
        inside = rows < T
        mask = known[None, :] & (token[None, :] <= rows[:, None]) & inside[:, None]
        q_rows, dy_rows = load(q, rows, T, K, KP), load(dy, rows, T, V, VP)
        scores = tl.where(mask, product(q_rows, tl.trans(own_k), IP, SUM), 0.0)
        through = tl.where(mask, product(dy_rows, tl.trans(own_v), IP, SUM), 0.0)
        if GATE != NONE:
            divisor = tl.load(lse + g * T + rows, mask=inside, other=0.0)
            along = tl.load(delta + g * T + rows, mask=inside, other=0.0)
            own = rows // S
            u_rows = q_rows
            if GATE == CONTEXT:
                u_rows = load(u, rows, T, K, KP)
            if MANY:
                segments = n + tl.arange(0, NSEG)
                factor = factors(segments, rows, S, scale, MEAN, SUM)
                if GATE == CONTEXT:
                    each = tl.where(mask, product(u_rows, tl.trans(own_p), IP, SUM), 0.0)
                    r = by_segment(each, BT, NSEG, SP) * factor
                else:
                    r = given_logits(logits + g * T * N, rows, segments, T, N).to(SUM)
                seen = (segments[None, :] <= own[:, None]) & inside[:, None]
                gamma = tl.where(seen, tl.exp(tl.where(seen, r - divisor[:, None], 0.0)), 0.0)
                weights = by_column(gamma, BT, NSEG, SP)
                if GATE == CONTEXT:
                    dr = gamma * (by_segment(scores * through, BT, NSEG, SP) - along[:, None]) * factor
                    pushed = tl.where(mask, by_column(dr, BT, NSEG, SP), 0.0)
                    acc_p += product(tl.trans(pushed.to(u_rows.dtype)), u_rows, IP, SUM)
            else:
                seen, mine = (own >= n) & inside, (own == n) & inside
                if GATE == CONTEXT:
                    factor = tl.zeros([BT], SUM) + scale
                    if MEAN:
                        factor = factor / (tl.zeros([BT], SUM) + S)
                    r = tl.sum(u_rows.to(SUM) * sums[None, :], 1) * factor
                    dgamma = tl.sum(product(q_rows, state.to(q_rows.dtype), IP, SUM) * dy_rows.to(SUM), 1)
                    gamma = tl.where(seen, tl.exp(tl.where(seen & (own > n), r - divisor, 0.0)), 0.0)
                    dr = gamma * (dgamma - along) * factor
                    gamma = tl.where(mine, tl.load(own_gamma + g * T + rows, mask=mine, other=0.0), gamma)
                    dr = tl.where(mine, tl.load(own_dr + g * T + rows, mask=mine, other=0.0), dr)
                    pushed = tl.where(mask, dr[:, None], 0.0)
                    acc_p += product(tl.trans(pushed.to(u_rows.dtype)), u_rows, IP, SUM)
                else:
                    r = tl.max(given_logits(logits + g * T * N, rows, n + tl.arange(0, 1), T, N).to(SUM), 1)
                    gamma = tl.where(seen, tl.exp(tl.where(seen, r - divisor, 0.0)), 0.0)
                weights = tl.broadcast_to(gamma[:, None], [BT, BN])
            scores, through = scores * weights, through * weights
        acc_v += product(tl.trans(scores.to(dy_rows.dtype)), dy_rows, IP, SUM)
        acc_k += product(tl.trans(through.to(q_rows.dtype)), q_rows, IP, SUM)
    store(dk + g * T * K, token, known, acc_k, K, KP)
    store(dv + g * T * V, token, known, acc_v, V, VP)
    if GATE == CONTEXT:
        store(dp + g * T * K, token, known, acc_p, K, KP)

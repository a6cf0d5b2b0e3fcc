"""Flash-SSC: y_t = sum_n w_t^(n) sum_{j in n, j <= t} (q_t . k_j) v_j with given weights w, and its backward pass.

This is Flash-GRM without its softmax. With J > 0, `weights` and `chosen` are [G, T, J]: token t reads the segments
chosen[t], and segments that no token of a tile chose are skipped. With J = 0, `weights` is [G, T, N], and all segments
are read. The gradient of a weight is dw_t^(n) = sum_{j in n, j <= t} (q_t . k_j) (dy_t . v_j). A weight of zero has one
too: so the score of a memory learns that was drawn and not chosen. No atomics.

Shapes as in tiles.py. A group is NSEG = BN / SP segments; with `MANY` it is one tile of columns, else it is one segment
in several tiles.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.linear.triton.tiles import by_column, by_segment, given_logits, load, load_columns, store
from mclab.kernels.tiles import product


@triton.jit
def of_sequence(q, k, v, weights, chosen, T, N, K: tl.constexpr, V: tl.constexpr, J: tl.constexpr):
    """The program's sequence and head, and where what it reads begins; N is the width of `weights`."""
    g = tl.program_id(0).to(tl.int64)
    return g, q + g * T * K, k + g * T * K, v + g * T * V, weights + g * T * N, chosen + g * T * J


@triton.jit
def part_of_group(n0, b, T, S, BN: tl.constexpr, SP: tl.constexpr):
    """The token of each column of the tile at place b of the segments from n0 on, and whether the column has one."""
    column = tl.arange(0, BN)
    place = b + column % SP
    token = (n0 + column // SP) * S + place
    return token, (place < S) & (token < T)


@triton.jit
def choices(chosen, weights, rows, T, J: tl.constexpr, JP: tl.constexpr, SUM: tl.constexpr):
    """[BT, JP] each: the segments that the rows chose, -1 where there is none, and the weights of these."""
    each = tl.arange(0, JP)
    at = rows[:, None].to(tl.int64) * J + each[None, :]
    there = (rows[:, None] < T) & (each[None, :] < J)
    return tl.load(chosen + at, mask=there, other=-1), tl.load(weights + at, mask=there, other=0.0).to(SUM)


@triton.jit
def any_reads(segments_read, n0, NSEG: tl.constexpr, J: tl.constexpr):
    """Whether a row reads one of the NSEG segments from n0 on."""
    if J:
        found = (segments_read >= n0) & (segments_read < n0 + NSEG)
        made = tl.max(tl.max(found.to(tl.int32), 1), 0) > 0
    else:
        made = n0 >= 0
    return made


@triton.jit
def weights_of(weights, segments_read, known, rows, segments, T, N, J: tl.constexpr):
    """[BT, NSEG]: the weights of these segments; `known` are those of `segments_read`."""
    if J:
        made = tl.sum(tl.where(segments_read[:, :, None] == segments[None, None, :], known[:, :, None], 0.0), 1)
    else:
        made = given_logits(weights, rows, segments, T, N).to(known.dtype)
    return made


@triton.jit(do_not_specialize=["T", "S", "N"])
def weighted_forward(
    q, k, v, weights, chosen, y, T, S, N,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, J: tl.constexpr, JP: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """There is one program for each sequence and head and each BT tokens. Writes y [G, T, V]."""
    NSEG: tl.constexpr = BN // SP
    g, q, k, v, weights, chosen = of_sequence(q, k, v, weights, chosen, T, N, K, V, J)
    rows = tl.program_id(1) * BT + tl.arange(0, BT)
    last = tl.minimum(tl.program_id(1) * BT + BT, T) - 1
    q_rows = load(q, rows, T, K, KP)
    segments_read, given = choices(chosen, weights, rows, T, J, JP, SUM)
    acc = tl.zeros([BT, VP], SUM)
    for n0 in range(0, last // S + 1, NSEG):
        if any_reads(segments_read, n0, NSEG, J):
            own = weights_of(weights, segments_read, given, rows, n0 + tl.arange(0, NSEG), T, N, J)
            wide = by_column(own, BT, NSEG, SP)
            span = BN if MANY else tl.minimum(S, last + 1 - n0 * S)
            for b in range(0, span, BN):
                token, known = part_of_group(n0, b, T, S, BN, SP)
                mask = known[None, :] & (token[None, :] <= rows[:, None])
                scores = product(q_rows, tl.trans(load_columns(k, token, known, K, KP)), IP, SUM)
                own_v = load_columns(v, token, known, V, VP)
                acc += product(tl.where(mask, scores * wide, 0.0).to(own_v.dtype), own_v, IP, SUM)
    store(y + g * T * V, rows, rows < T, acc, V, VP)


@triton.jit(do_not_specialize=["T", "S", "N"])
def weighted_rows_backward(
    q, k, v, weights, chosen, dy, dq, dweights, T, S, N,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, J: tl.constexpr, JP: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """The programs are as in the forward pass. Writes dq and the gradient of the weights.

    With J = 0, the gradient of weights of segments later than the segment of the last row is not written.
    """
    NSEG: tl.constexpr = BN // SP
    g, q, k, v, weights, chosen = of_sequence(q, k, v, weights, chosen, T, N, K, V, J)
    rows = tl.program_id(1) * BT + tl.arange(0, BT)
    last = tl.minimum(tl.program_id(1) * BT + BT, T) - 1
    q_rows, dy_rows = load(q, rows, T, K, KP), load(dy + g * T * V, rows, T, V, VP)
    segments_read, given = choices(chosen, weights, rows, T, J, JP, SUM)
    acc_q, acc_w = tl.zeros([BT, KP], SUM), tl.zeros([BT, JP], SUM)
    for n0 in range(0, last // S + 1, NSEG):
        if any_reads(segments_read, n0, NSEG, J):
            segments = n0 + tl.arange(0, NSEG)
            own = weights_of(weights, segments_read, given, rows, segments, T, N, J)
            pull, worth = tl.zeros([BT, KP], SUM), tl.zeros([BT, NSEG], SUM)
            span = BN if MANY else tl.minimum(S, last + 1 - n0 * S)
            for b in range(0, span, BN):
                token, known = part_of_group(n0, b, T, S, BN, SP)
                mask = known[None, :] & (token[None, :] <= rows[:, None])
                through = product(dy_rows, tl.trans(load_columns(v, token, known, V, VP)), IP, SUM)
                through, own_k = tl.where(mask, through, 0.0), load_columns(k, token, known, K, KP)
                if MANY:
                    scores = product(q_rows, tl.trans(own_k), IP, SUM)
                    worth += by_segment(scores * through, BT, NSEG, SP)
                    through = through * by_column(own, BT, NSEG, SP)
                pull += product(through.to(own_k.dtype), own_k, IP, SUM)
            if MANY:
                acc_q += pull
            else:  # q_t times what dq_t gets of the segment, as in Flash-GRM
                worth = tl.sum(q_rows.to(SUM) * pull, 1)[:, None]
                acc_q += pull * own
            if J:
                met = segments_read[:, :, None] == segments[None, None, :]
                acc_w += tl.sum(tl.where(met, worth[:, None, :], 0.0), 2)
            else:
                at = dweights + g * T * N + rows[:, None].to(tl.int64) * N + segments[None, :]
                tl.store(at, worth, mask=(rows[:, None] < T) & (segments[None, :] < N))
    store(dq + g * T * K, rows, rows < T, acc_q, K, KP)
    if J:
        store(dweights + g * T * J, rows, rows < T, acc_w, J, JP)


@triton.jit(do_not_specialize=["T", "S", "N"])
def weighted_columns_backward(
    q, k, v, weights, chosen, dy, dk, dv, T, S, N,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr,
    SP: tl.constexpr, MANY: tl.constexpr, J: tl.constexpr, JP: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """There is one program for each sequence and head and each tile of columns. Writes dk and dv."""
    NSEG: tl.constexpr = BN // SP
    g, q, k, v, weights, chosen = of_sequence(q, k, v, weights, chosen, T, N, K, V, J)
    tiles = 1 if MANY else tl.cdiv(S, BN)
    n0, b = tl.program_id(1) // tiles * NSEG, tl.program_id(1) % tiles * BN
    token, known = part_of_group(n0, b, T, S, BN, SP)
    own_k, own_v = load_columns(k, token, known, K, KP), load_columns(v, token, known, V, VP)
    acc_k, acc_v = tl.zeros([BN, KP], SUM), tl.zeros([BN, VP], SUM)
    for t0 in range((n0 * S + b) // BT * BT, T, BT):
        rows = t0 + tl.arange(0, BT)
        segments_read, given = choices(chosen, weights, rows, T, J, JP, SUM)
        if any_reads(segments_read, n0, NSEG, J):
            own = weights_of(weights, segments_read, given, rows, n0 + tl.arange(0, NSEG), T, N, J)
            mask = known[None, :] & (token[None, :] <= rows[:, None])
            wide = tl.where(mask, by_column(own, BT, NSEG, SP), 0.0)
            q_rows, dy_rows = load(q, rows, T, K, KP), load(dy + g * T * V, rows, T, V, VP)
            scores = product(q_rows, tl.trans(own_k), IP, SUM) * wide
            acc_v += product(tl.trans(scores.to(dy_rows.dtype)), dy_rows, IP, SUM)
            through = product(dy_rows, tl.trans(own_v), IP, SUM) * wide
            acc_k += product(tl.trans(through.to(q_rows.dtype)), q_rows, IP, SUM)
    store(dk + g * T * K, token, known, acc_k, K, KP)
    store(dv + g * T * V, token, known, acc_v, V, VP)

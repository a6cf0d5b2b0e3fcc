"""This kernel is the backward pass of the chunk loop of a memory of depth 2, from the last chunk to the first.

It computes each chunk again from the state that was carried into the chunk. No two programs write to the same memory,
so there are no atomics. Shapes as in forward.py.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.fastweight.triton.chunk import descend, last_backward, phi
from mclab.kernels.tiles import numbers, product, put, put_numbers, tile


@triton.jit
def add(base, x, first, K: tl.constexpr, E: tl.constexpr, KP: tl.constexpr, EP: tl.constexpr):
    """Add x to a matrix that only this program writes. The `first` time, set the matrix to x."""
    rows, columns = tl.arange(0, KP), tl.arange(0, EP)
    at = base + rows[:, None] * E + columns[None, :]
    inside = (rows[:, None] < K) & (columns[None, :] < E)
    before = tl.load(at, mask=inside & (first == 0), other=0.0)
    tl.store(at, before + x, mask=inside)


@triton.jit
def weights(states, start, place, K: tl.constexpr, KP: tl.constexpr, TO_START: tl.constexpr):
    """Return W carried into a chunk. It is loaded wherever it is needed, as there are too few registers to keep it."""
    w = tile(states + place, K, 4 * K, KP, 4 * KP)
    if TO_START:
        w += tile(start, K, 4 * K, KP, 4 * KP)
    return w


@triton.jit(do_not_specialize=["M", "X", "C", "each", "kept"])
def backward(
    q, k, v, writes, factors, ends, mix, gain, start1, start2, states1, states2, dy, place_kept, dkept1, dkept2,
    dq, dk, dv, dwrites, dfactors, dends, dmix, dgain, dstart1, dstart2, M, X, C, each, kept, floor,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, KEEPS: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of all arguments of the forward pass, and write them to `dq`, `dk` and so on.

    `dkept` [X, kept, K, E] are the gradients of W after the kept chunks. `place_kept` [M] is the index in `dkept` of
    each chunk, or -1 for a chunk that is not kept. dstart [X, K, E] and dgain [X, K] have the share of each sequence;
    the caller adds them up.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    x = tl.program_id(0).to(tl.int64)
    start1, start2 = start1 + x // each * SIZE, start2 + x // each * SIZE
    dstart1, dstart2 = dstart1 + x * SIZE, dstart2 + x * SIZE
    g = tl.load(gain + x * K + tl.arange(0, KP), mask=tl.arange(0, KP) < K, other=0.0)[None, :] if NORM else 0.0
    total_gain = tl.zeros([KP], SUM)
    # Gradients of the slots after the current chunk.
    gd1, gd2, gs1, gs2 = (
        tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM)
    )  # fmt: skip
    for back in range(M):
        m = M - 1 - back
        at = m * X + x
        place = at * SLOTS * SIZE
        first = back == 0
        if KEEPS:
            which = tl.load(place_kept + m)
            if which >= 0:
                from_kept = (x * kept + which) * SIZE
                own1, own2 = tile(dkept1 + from_kept, K, E, KP, EP), tile(dkept2 + from_kept, K, E, KP, EP)
                gd1, gd2 = gd1 + own1, gd2 + own2
                if TO_START:
                    add(dstart1, own1, back == 0, K, E, KP, EP)
                    add(dstart2, own2, back == 0, K, E, KP, EP)
            first = first & (which < 0)
        k_m, v_m = tile(k + at * C * K, C, K, CP, KP), tile(v + at * C * K, C, K, CP, KP)
        q_m, c_m = tile(q + at * C * K, C, K, CP, KP), tile(writes + at * C * C, C, C, CP, CP)
        dy_m = tile(dy + at * C * K, C, K, CP, KP)
        # Compute the chunk's forward pass again.
        w1 = weights(states1, start1, place, K, KP, TO_START)
        w2 = weights(states2, start2, place, K, KP, TO_START)
        z, a, u1, u2, r, inverse, unit, error, pushed, mid = descend(
            k_m, v_m, w1, w2, g, floor, K, L2, NORM, SKIP, IP, SUM
        )
        f = numbers(factors + at * C * SLOTS, 0, C, CP, SLOTS)[:, None] if SCALED else 1.0
        e = numbers(ends + at * C * SLOTS, 0, C, CP, SLOTS)[:, None]
        score1 = product(q_m, tl.trans(k_m), IP, SUM)
        own = product(c_m * score1, u1, IP, SUM) + product(q_m * f, tile(states1 + place, K, E, KP, EP), IP, SUM)
        if SLOTS == 2:
            f_s = numbers(factors + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
            e_s = numbers(ends + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
            own += product(q_m * f_s, tile(states1 + place + SIZE, K, E, KP, EP), IP, SUM)
        if TO_START:
            own += product(q_m, tile(start1, K, E, KP, EP), IP, SUM)
        cdf, density = phi(own)
        hidden, slope_read = own * cdf, cdf + own * density
        # Back through N' = mix N + sum_j e_j narrow_j wide_j^T.
        t1, t2 = product(u1, tl.trans(gd1), IP, SUM), product(a, tl.trans(gd2), IP, SUM)
        put_numbers(dends + at * C * SLOTS, tl.sum(t1 * k_m, 1) + tl.sum(t2 * u2, 1), 0, C, CP, SLOTS)
        dk_m, du1 = t1 * e, product(k_m * e, gd1, IP, SUM)
        du2, da = t2 * e, product(u2 * e, gd2, IP, SUM)
        if SCALED:
            d1, d2 = tile(states1 + place, K, E, KP, EP), tile(states2 + place, K, E, KP, EP)
            tl.store(dmix + at * SLOTS * SLOTS, tl.sum(gd1 * d1) + tl.sum(gd2 * d2))
        if SLOTS == 2:
            t1, t2 = product(u1, tl.trans(gs1), IP, SUM), product(a, tl.trans(gs2), IP, SUM)
            put_numbers(dends + at * C * SLOTS, tl.sum(t1 * k_m, 1) + tl.sum(t2 * u2, 1), 1, C, CP, SLOTS)
            dk_m, du1 = dk_m + t1 * e_s, du1 + product(k_m * e_s, gs1, IP, SUM)
            du2, da = du2 + t2 * e_s, da + product(u2 * e_s, gs2, IP, SUM)
            s1, s2 = tile(states1 + place + SIZE, K, E, KP, EP), tile(states2 + place + SIZE, K, E, KP, EP)
            of_mix = dmix + at * SLOTS * SLOTS
            tl.store(of_mix + 1, tl.sum(gd1 * s1) + tl.sum(gd2 * s2))
            tl.store(of_mix + 2, 0.0)
            tl.store(of_mix + 3, tl.sum(gs1 * s1) + tl.sum(gs2 * s2))
            carry, momentum = tl.load(mix + at * SLOTS * SLOTS + 1), tl.load(mix + at * SLOTS * SLOTS + 3)
            gs1, gs2 = carry * gd1 + momentum * gs1, carry * gd2 + momentum * gs2
        if SCALED:
            decay = tl.load(mix + at * SLOTS * SLOTS)
            gd1, gd2 = gd1 * decay, gd2 * decay
        # Back through the read, its second layer first.
        score2 = product(hidden, tl.trans(a), IP, SUM)
        pull = product(dy_m, tl.trans(u2), IP, SUM)
        dc, pull = pull * score2, pull * c_m
        dhidden = product(pull, a, IP, SUM)
        da += product(tl.trans(pull), hidden, IP, SUM)
        du2 += product(tl.trans(c_m * score2), dy_m, IP, SUM)
        d2 = tile(states2 + place, K, E, KP, EP)
        df = tl.sum(dy_m * product(hidden, tl.trans(d2), IP, SUM), 1)
        dhidden += product(dy_m * f, d2, IP, SUM)
        gd2 += product(tl.trans(dy_m * f), hidden, IP, SUM)
        if SLOTS == 2:
            s2 = tile(states2 + place + SIZE, K, E, KP, EP)
            df_s = tl.sum(dy_m * product(hidden, tl.trans(s2), IP, SUM), 1)
            dhidden += product(dy_m * f_s, s2, IP, SUM)
            gs2 += product(tl.trans(dy_m * f_s), hidden, IP, SUM)
        if TO_START:
            dhidden += product(dy_m, tile(start2, K, E, KP, EP), IP, SUM)
        down = dhidden * slope_read
        pull = product(down, tl.trans(u1), IP, SUM)
        put(dwrites + at * C * C, dc + pull * score1, C, C, CP, CP)
        pull = pull * c_m
        dq_m = product(pull, k_m, IP, SUM)
        dk_m += product(tl.trans(pull), q_m, IP, SUM)
        du1 += product(tl.trans(c_m * score1), down, IP, SUM)
        through = product(down, tl.trans(tile(states1 + place, K, E, KP, EP)), IP, SUM)
        dq_m += through * f
        df += tl.sum(through * q_m, 1)
        gd1 += product(tl.trans(q_m * f), down, IP, SUM)
        if SLOTS == 2:
            through = product(down, tl.trans(tile(states1 + place + SIZE, K, E, KP, EP)), IP, SUM)
            dq_m += through * f_s
            df_s += tl.sum(through * q_m, 1)
            gs1 += product(tl.trans(q_m * f_s), down, IP, SUM)
            put_numbers(dfactors + at * C * SLOTS, df_s, 1, C, CP, SLOTS)
        if SCALED:
            put_numbers(dfactors + at * C * SLOTS, df, 0, C, CP, SLOTS)
        if TO_START:
            dq_m += product(down, tl.trans(tile(start1, K, E, KP, EP)), IP, SUM)
        put(dq + at * C * K, dq_m, C, K, CP, KP)
        # Back through the descent at W.
        cdf, density = phi(z)
        slope = cdf + z * density
        dr, dz = du1 * slope, du1 * r * (2 - z * z) * density
        w2 = weights(states2, start2, place, K, KP, TO_START)
        du2 += product(dr, tl.trans(w2), IP, SUM)
        dw2 = product(tl.trans(u2), dr, IP, SUM)
        dh, dv_m, dgain_m = last_backward(du2, inverse, unit, error, pushed, mid, g, K, L2, NORM)
        if L2 or NORM:
            da += product(dh, w2, IP, SUM)
            dw2 += product(tl.trans(dh), a, IP, SUM)
        dz += da * slope
        w1 = weights(states1, start1, place, K, KP, TO_START)
        dk_m += product(dz, tl.trans(w1), IP, SUM)
        dw1 = product(tl.trans(k_m), dz, IP, SUM)
        if L2 and SKIP:
            dk_m -= dv_m
        if NORM:
            total_gain += tl.sum(dgain_m, 0)
        put(dk + at * C * K, dk_m, C, K, CP, KP)
        put(dv + at * C * K, dv_m, C, K, CP, KP)
        gd1, gd2 = gd1 + dw1, gd2 + dw2
        if TO_START:
            dw1 += product(tl.trans(q_m), down, IP, SUM)
            dw2 += product(tl.trans(dy_m), hidden, IP, SUM)
            add(dstart1, dw1, first, K, E, KP, EP)
            add(dstart2, dw2, first, K, E, KP, EP)
    if not TO_START:
        put(dstart1, gd1, K, E, KP, EP)
        put(dstart2, gd2, K, E, KP, EP)
    if NORM:
        tl.store(dgain + x * K + tl.arange(0, KP), total_gain, mask=tl.arange(0, KP) < K)

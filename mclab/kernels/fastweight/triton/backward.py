"""The chunk loop of a memory of depth 2, backward: the gradients of the states, and from them those of the tokens.

Every program writes only to memory of its own, so there are no atomics. Shapes as in forward.py; what reads_backward.py
has left is read here.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.fastweight.triton.chunk import last, last_backward, weights
from mclab.kernels.tiles import numbers, product, put, put_numbers, tile


@triton.jit(do_not_specialize=["M", "X", "C", "each", "kept"])
def states_backward(
    k, v, ends, mix, gain, start2, states2, place_kept, dkept1, dkept2, a, slope, bend, u2, h, du2,
    grads1, grads2, dv, dgain, dstart1, dstart2, M, X, C, each, kept, floor,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, KEEPS: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """A program goes from a sequence's last chunk to its first, with as little as each chunk has to wait for.

    `dkept` [X, kept, K, E] are the gradients of W after the kept chunks; `place_kept` [M] is the index in `dkept` of
    each chunk, or -1 for a chunk that is not kept. grads [M + 1, X, s, K, E] have what the reads give to the states
    carried into each chunk, and get the whole gradient; dr, dz and dh, without the reads' share, take the places of
    slope, bend and du2. dstart and dgain have the share of each sequence; the caller adds them up.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    x = tl.program_id(0).to(tl.int64)
    start2 = start2 + x // each * SIZE
    g = tl.load(gain + x * K + tl.arange(0, KP), mask=tl.arange(0, KP) < K, other=0.0)[None, :] if NORM else 0.0
    total_gain = tl.zeros([KP], SUM)
    # Gradients of the first slot after the current chunk. Those of the momentum are loaded again wherever they are
    # needed, as there are too few registers to keep them.
    gd1, gd2 = tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM)
    if SLOTS == 2:
        end = (M * X + x) * SLOTS * SIZE + SIZE
        put(grads1 + end, gd1, K, E, KP, EP)
        put(grads2 + end, gd2, K, E, KP, EP)
        tl.debug_barrier()
    for back in range(M):
        m = M - 1 - back
        at = m * X + x
        place, after = at * SLOTS * SIZE, (at + X) * SLOTS * SIZE
        if KEEPS:
            which = tl.load(place_kept + m)
            if which >= 0:
                from_kept = (x * kept + which) * SIZE
                gd1 += tile(dkept1 + from_kept, K, E, KP, EP)
                gd2 += tile(dkept2 + from_kept, K, E, KP, EP)
        k_m, u2_m = tile(k + at * C * K, C, K, CP, KP), tile(u2 + at * C * K, C, K, CP, KP)
        a_m = tile(a + at * C * E, C, E, CP, EP)
        e = numbers(ends + at * C * SLOTS, 0, C, CP, SLOTS)[:, None]
        # Back through N' = mix N + sum_j e_j narrow_j wide_j^T.
        du1, da = product(k_m * e, gd1, IP, SUM), product(u2_m * e, gd2, IP, SUM)
        du2_m = tile(du2 + at * C * K, C, K, CP, KP) + product(a_m, tl.trans(gd2), IP, SUM) * e
        if SLOTS == 2:
            e_s = numbers(ends + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
            gs2 = tile(grads2 + after + SIZE, K, E, KP, EP)
            da += product(u2_m * e_s, gs2, IP, SUM)
            du2_m += product(a_m, tl.trans(gs2), IP, SUM) * e_s
            du1 += product(k_m * e_s, tile(grads1 + after + SIZE, K, E, KP, EP), IP, SUM)
        # Back through the descent at W.
        slope_m = tile(slope + at * C * E, C, E, CP, EP)
        dr, dz = slope_m * du1, tile(bend + at * C * E, C, E, CP, EP) * du1
        w2 = weights(states2, start2, place, K, KP, TO_START)
        du2_m += product(dr, tl.trans(w2), IP, SUM)
        v_m = tile(v + at * C * K, C, K, CP, KP)
        if NORM:
            h_m = tile(h + at * C * K, C, K, CP, KP)
            _, inverse, unit, error, pushed, mid = last(h_m, k_m, v_m, g, floor, K, L2, NORM, SKIP)
            dh, dv_m, dgain_m = last_backward(du2_m, inverse, unit, error, pushed, mid, g, K, L2, NORM)
            total_gain += tl.sum(dgain_m, 0)
        else:
            dh, dv_m, _ = last_backward(du2_m, v_m, v_m, v_m, v_m, v_m, g, K, L2, NORM)
        if L2 or NORM:
            da += product(dh, w2, IP, SUM)
        dz += slope_m * da
        # What is written over has been read by all threads.
        tl.debug_barrier()
        put(slope + at * C * E, dr, C, E, CP, EP)
        put(bend + at * C * E, dz, C, E, CP, EP)
        put(du2 + at * C * K, dh, C, K, CP, KP)
        put(dv + at * C * K, dv_m, C, K, CP, KP)
        put(grads1 + after, gd1, K, E, KP, EP)
        put(grads2 + after, gd2, K, E, KP, EP)
        if SLOTS == 2:
            carry, momentum = tl.load(mix + at * SLOTS * SLOTS + 1), tl.load(mix + at * SLOTS * SLOTS + 3)
            gs1 = carry * gd1 + momentum * tile(grads1 + after + SIZE, K, E, KP, EP)
            gs1 += tile(grads1 + place + SIZE, K, E, KP, EP)
            gs2 = carry * gd2 + momentum * tile(grads2 + after + SIZE, K, E, KP, EP)
            gs2 += tile(grads2 + place + SIZE, K, E, KP, EP)
            tl.debug_barrier()
            put(grads1 + place + SIZE, gs1, K, E, KP, EP)
            put(grads2 + place + SIZE, gs2, K, E, KP, EP)
            tl.debug_barrier()
        if SCALED:
            decay = tl.load(mix + at * SLOTS * SLOTS)
            gd1, gd2 = gd1 * decay, gd2 * decay
        gd1 += product(tl.trans(k_m), dz, IP, SUM) + tile(grads1 + place, K, E, KP, EP)
        gd2 += product(tl.trans(u2_m), dr, IP, SUM) + tile(grads2 + place, K, E, KP, EP)
        if L2 or NORM:
            gd2 += product(tl.trans(dh), a_m, IP, SUM)
    if not TO_START:
        put(dstart1 + x * SIZE, gd1, K, E, KP, EP)
        put(dstart2 + x * SIZE, gd2, K, E, KP, EP)
    if NORM:
        tl.store(dgain + x * K + tl.arange(0, KP), total_gain, mask=tl.arange(0, KP) < K)


@triton.jit(do_not_specialize=["X", "C", "each", "kept"])
def tokens_backward(
    k, ends, start1, states1, states2, place_kept, dkept1, dkept2, a, u1, u2, dr, dz, dh, dv, grads1, grads2,
    dk, dends, dmix, whole1, whole2, X, C, each, kept,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, KEEPS: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """A program computes what is left of one chunk of one sequence, from the gradients of the states after it.

    These are the gradients of ends and mix, and what dk and `whole` still lack.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    at = tl.program_id(0).to(tl.int64)
    m, x, place = at // X, at % X, at * SLOTS * SIZE
    after = place + X * SLOTS * SIZE
    of_mix, of_ends = dmix + at * SLOTS * SLOTS, dends + at * C * SLOTS
    # The first layer, then the second: the rows of u1 and of a would not fit into registers together.
    k_m, u1_m = tile(k + at * C * K, C, K, CP, KP), tile(u1 + at * C * E, C, E, CP, EP)
    gd = tile(grads1 + after, K, E, KP, EP)
    t = product(u1_m, tl.trans(gd), IP, SUM)
    own = tl.sum(t * k_m, 1)
    dk_m = t * numbers(ends + at * C * SLOTS, 0, C, CP, SLOTS)[:, None]
    if SCALED:
        decay = tl.sum(gd * tile(states1 + place, K, E, KP, EP))
    if SLOTS == 2:
        gs, s = tile(grads1 + after + SIZE, K, E, KP, EP), tile(states1 + place + SIZE, K, E, KP, EP)
        t = product(u1_m, tl.trans(gs), IP, SUM)
        own_s = tl.sum(t * k_m, 1)
        dk_m += t * numbers(ends + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
        carry, momentum = tl.sum(gd * s), tl.sum(gs * s)
    u2_m, a_m = tile(u2 + at * C * K, C, K, CP, KP), tile(a + at * C * E, C, E, CP, EP)
    gd = tile(grads2 + after, K, E, KP, EP)
    put_numbers(of_ends, own + tl.sum(product(a_m, tl.trans(gd), IP, SUM) * u2_m, 1), 0, C, CP, SLOTS)
    if SCALED:
        tl.store(of_mix, decay + tl.sum(gd * tile(states2 + place, K, E, KP, EP)))
    if SLOTS == 2:
        gs, s = tile(grads2 + after + SIZE, K, E, KP, EP), tile(states2 + place + SIZE, K, E, KP, EP)
        put_numbers(of_ends, own_s + tl.sum(product(a_m, tl.trans(gs), IP, SUM) * u2_m, 1), 1, C, CP, SLOTS)
        tl.store(of_mix + 1, carry + tl.sum(gd * s))
        tl.store(of_mix + 2, 0.0)
        tl.store(of_mix + 3, momentum + tl.sum(gs * s))
    dz_m = tile(dz + at * C * E, C, E, CP, EP)
    dk_m += product(dz_m, tl.trans(weights(states1, start1 + x // each * SIZE, place, K, KP, TO_START)), IP, SUM)
    dk_m += tile(dk + at * C * K, C, K, CP, KP)
    if L2 and SKIP:
        dk_m -= tile(dv + at * C * K, C, K, CP, KP)
    tl.debug_barrier()
    put(dk + at * C * K, dk_m, C, K, CP, KP)
    if TO_START:
        dr_m = tile(dr + at * C * E, C, E, CP, EP)
        dw1 = tile(whole1 + at * SIZE, K, E, KP, EP) + product(tl.trans(k_m), dz_m, IP, SUM)
        dw2 = tile(whole2 + at * SIZE, K, E, KP, EP) + product(tl.trans(u2_m), dr_m, IP, SUM)
        if L2 or NORM:
            dw2 += product(tl.trans(tile(dh + at * C * K, C, K, CP, KP)), a_m, IP, SUM)
        if KEEPS:
            which = tl.load(place_kept + m)
            if which >= 0:
                from_kept = (x * kept + which) * SIZE
                dw1 += tile(dkept1 + from_kept, K, E, KP, EP)
                dw2 += tile(dkept2 + from_kept, K, E, KP, EP)
        tl.debug_barrier()
        put(whole1 + at * SIZE, dw1, K, E, KP, EP)
        put(whole2 + at * SIZE, dw2, K, E, KP, EP)

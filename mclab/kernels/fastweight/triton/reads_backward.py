"""The chunk loop of a memory of depth 2, backward: what of a chunk does not depend on the chunks after it.

A program computes one chunk of one sequence. Programs do not wait for each other. There are three kernels, as one would
need more registers than there are: the chunk's forward pass again, then back through the second layer of its reads,
then back through their first layer and the descent. Shapes as in forward.py.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.fastweight.triton.chunk import descend, phi, weights
from mclab.kernels.tiles import numbers, product, put, put_numbers, tile


@triton.jit(do_not_specialize=["X", "C", "each"])
def again(
    q, k, v, writes, factors, gain, start1, start2, states1, states2, a, slope, bend, u1, u2, h, own, X, C, each, floor,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr, IP: tl.constexpr,
    SUM: tl.constexpr,
):  # fmt: skip
    """Compute a chunk again from the state carried into it: a, u1, u2, the output h, and `own`, what the reads have
    before their activation.

    The descent is linear in the gradients du1 and da that reach it: dr = slope du1, dz = bend du1 + slope da.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    at = tl.program_id(0).to(tl.int64)
    x, place = at % X, at * SLOTS * SIZE
    start1, start2 = start1 + x // each * SIZE, start2 + x // each * SIZE
    g = tl.load(gain + x * K + tl.arange(0, KP), mask=tl.arange(0, KP) < K, other=0.0)[None, :] if NORM else 0.0
    k_m, v_m = tile(k + at * C * K, C, K, CP, KP), tile(v + at * C * K, C, K, CP, KP)
    w1 = weights(states1, start1, place, K, KP, TO_START)
    w2 = weights(states2, start2, place, K, KP, TO_START)
    z, a_m, u1_m, u2_m, r, h_m = descend(k_m, v_m, w1, w2, g, floor, K, L2, NORM, SKIP, IP, SUM)
    cdf, density = phi(z)
    put(a + at * C * E, a_m, C, E, CP, EP)
    put(slope + at * C * E, cdf + z * density, C, E, CP, EP)
    put(bend + at * C * E, r * (2 - z * z) * density, C, E, CP, EP)
    put(u1 + at * C * E, u1_m, C, E, CP, EP)
    put(u2 + at * C * K, u2_m, C, K, CP, KP)
    if NORM:
        put(h + at * C * K, h_m, C, K, CP, KP)
    q_m, c_m = tile(q + at * C * K, C, K, CP, KP), tile(writes + at * C * C, C, C, CP, CP)
    f = numbers(factors + at * C * SLOTS, 0, C, CP, SLOTS)[:, None] if SCALED else 1.0
    own_m = product(c_m * product(q_m, tl.trans(k_m), IP, SUM), u1_m, IP, SUM)
    own_m += product(q_m * f, tile(states1 + place, K, E, KP, EP), IP, SUM)
    if SLOTS == 2:
        f_s = numbers(factors + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
        own_m += product(q_m * f_s, tile(states1 + place + SIZE, K, E, KP, EP), IP, SUM)
    if TO_START:
        own_m += product(q_m, tile(start1, K, E, KP, EP), IP, SUM)
    put(own + at * C * E, own_m, C, E, CP, EP)


@triton.jit(do_not_specialize=["X", "C", "each"])
def second_backward(
    writes, factors, start2, states2, dy, a, u2, own, dwrites, dfactors, down, da, du2, grads2, whole2, X, C, each,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Back through the second layer of a chunk's reads, from dy to `down`, the gradient of `own`.

    Gradients of what both layers use, writes and factors, have this layer's share. grads [M (+ 1), X, s, K, E] are
    gradients of the states carried into the chunk, `whole` [M, X, K, E] of W^0.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    at = tl.program_id(0).to(tl.int64)
    place = at * SLOTS * SIZE
    own_m, a_m = tile(own + at * C * E, C, E, CP, EP), tile(a + at * C * E, C, E, CP, EP)
    dy_m, u2_m = tile(dy + at * C * K, C, K, CP, KP), tile(u2 + at * C * K, C, K, CP, KP)
    c_m = tile(writes + at * C * C, C, C, CP, CP)
    f = numbers(factors + at * C * SLOTS, 0, C, CP, SLOTS)[:, None] if SCALED else 1.0
    cdf, density = phi(own_m)
    hidden = own_m * cdf
    scores, pull = product(hidden, tl.trans(a_m), IP, SUM), product(dy_m, tl.trans(u2_m), IP, SUM)
    put(dwrites + at * C * C, pull * scores, C, C, CP, CP)
    put(du2 + at * C * K, product(tl.trans(c_m * scores), dy_m, IP, SUM), C, K, CP, KP)
    pull = pull * c_m
    dhidden = product(pull, a_m, IP, SUM)
    put(da + at * C * E, product(tl.trans(pull), hidden, IP, SUM), C, E, CP, EP)
    d2 = tile(states2 + place, K, E, KP, EP)
    if SCALED:
        df = tl.sum(dy_m * product(hidden, tl.trans(d2), IP, SUM), 1)
        put_numbers(dfactors + at * C * SLOTS, df, 0, C, CP, SLOTS)
    dhidden += product(dy_m * f, d2, IP, SUM)
    put(grads2 + place, product(tl.trans(dy_m * f), hidden, IP, SUM), K, E, KP, EP)
    if SLOTS == 2:
        f_s = numbers(factors + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
        s2 = tile(states2 + place + SIZE, K, E, KP, EP)
        df_s = tl.sum(dy_m * product(hidden, tl.trans(s2), IP, SUM), 1)
        put_numbers(dfactors + at * C * SLOTS, df_s, 1, C, CP, SLOTS)
        dhidden += product(dy_m * f_s, s2, IP, SUM)
        put(grads2 + place + SIZE, product(tl.trans(dy_m * f_s), hidden, IP, SUM), K, E, KP, EP)
    if TO_START:
        dhidden += product(dy_m, tile(start2 + at % X // each * SIZE, K, E, KP, EP), IP, SUM)
        put(whole2 + at * SIZE, product(tl.trans(dy_m), hidden, IP, SUM), K, E, KP, EP)
    put(down + at * C * E, dhidden * (cdf + own_m * density), C, E, CP, EP)


@triton.jit(do_not_specialize=["X", "C", "each"])
def first_backward(
    q, k, writes, factors, start1, start2, states1, states2, slope, bend, u1, u2, down, da,
    dq, dk, dwrites, dfactors, du2, grads1, grads2, whole1, whole2, X, C, each,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Back through the first layer of a chunk's reads and with du1 and da through the descent, up to du2.

    What later chunks give to du2 goes through the last layer's update together with this du2, in `states_backward`.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    at = tl.program_id(0).to(tl.int64)
    place, first = at * SLOTS * SIZE, at % X // each * SIZE
    q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
    c_m, down_m = tile(writes + at * C * C, C, C, CP, CP), tile(down + at * C * E, C, E, CP, EP)
    f = numbers(factors + at * C * SLOTS, 0, C, CP, SLOTS)[:, None] if SCALED else 1.0
    scores = product(q_m, tl.trans(k_m), IP, SUM)
    pull = product(down_m, tl.trans(tile(u1 + at * C * E, C, E, CP, EP)), IP, SUM)
    dc = tile(dwrites + at * C * C, C, C, CP, CP) + pull * scores
    pull = pull * c_m
    du1 = product(tl.trans(c_m * scores), down_m, IP, SUM)
    dq_m, dk_m = product(pull, k_m, IP, SUM), product(tl.trans(pull), q_m, IP, SUM)
    through = product(down_m, tl.trans(tile(states1 + place, K, E, KP, EP)), IP, SUM)
    dq_m += through * f
    if SCALED:
        df = numbers(dfactors + at * C * SLOTS, 0, C, CP, SLOTS) + tl.sum(through * q_m, 1)
    if SLOTS == 2:
        f_s = numbers(factors + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
        through = product(down_m, tl.trans(tile(states1 + place + SIZE, K, E, KP, EP)), IP, SUM)
        dq_m += through * f_s
        df_s = numbers(dfactors + at * C * SLOTS, 1, C, CP, SLOTS) + tl.sum(through * q_m, 1)
        put(grads1 + place + SIZE, product(tl.trans(q_m * f_s), down_m, IP, SUM), K, E, KP, EP)
    if TO_START:
        dq_m += product(down_m, tl.trans(tile(start1 + first, K, E, KP, EP)), IP, SUM)
    put(dq + at * C * K, dq_m, C, K, CP, KP)
    # Back through the descent at W.
    slope_m = tile(slope + at * C * E, C, E, CP, EP)
    dr, dz = slope_m * du1, tile(bend + at * C * E, C, E, CP, EP) * du1 + slope_m * tile(da + at * C * E, C, E, CP, EP)
    dk_m += product(dz, tl.trans(weights(states1, start1 + first, place, K, KP, TO_START)), IP, SUM)
    put(dk + at * C * K, dk_m, C, K, CP, KP)
    dw1 = product(tl.trans(k_m), dz, IP, SUM)
    put(grads1 + place, dw1 + product(tl.trans(q_m * f), down_m, IP, SUM), K, E, KP, EP)
    if TO_START:
        put(whole1 + at * SIZE, dw1 + product(tl.trans(q_m), down_m, IP, SUM), K, E, KP, EP)
    w2 = weights(states2, start2 + first, place, K, KP, TO_START)
    du2_m = tile(du2 + at * C * K, C, K, CP, KP) + product(dr, tl.trans(w2), IP, SUM)
    dw2 = product(tl.trans(tile(u2 + at * C * K, C, K, CP, KP)), dr, IP, SUM)
    gd2 = tile(grads2 + place, K, E, KP, EP) + dw2
    if TO_START:
        dw2 += tile(whole2 + at * SIZE, K, E, KP, EP)
    # What is written over has been read by all threads.
    tl.debug_barrier()
    put(dwrites + at * C * C, dc, C, C, CP, CP)
    put(du2 + at * C * K, du2_m, C, K, CP, KP)
    put(grads2 + place, gd2, K, E, KP, EP)
    if SCALED:
        put_numbers(dfactors + at * C * SLOTS, df, 0, C, CP, SLOTS)
    if SLOTS == 2:
        put_numbers(dfactors + at * C * SLOTS, df_s, 1, C, CP, SLOTS)
    if TO_START:
        put(whole2 + at * SIZE, dw2, K, E, KP, EP)

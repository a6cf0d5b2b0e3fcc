"""The chunk loop of a memory of depth 2, forward: the states of a sequence chunk after chunk, then all its reads.

One program descends and reads the chunks of a sequence one after the other. The equations are those of
mclab/kernels/fastweight/fused.py. Shapes: M chunks, X sequences (with heads, and segments where they restart), C
tokens, s slots of a state (W or W - W^0, then the momentum), K width, E = 4 K.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.fastweight.triton.chunk import descend, phi
from mclab.kernels.tiles import numbers, product, put, tile


@triton.jit(do_not_specialize=["M", "X", "C", "each"])
def states(
    k, v, ends, mix, gain, start1, start2, states1, states2, a, u1, u2, M, X, C, each, floor,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, LAST: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read k and v [M, X, C, K], ends [M, X, C, s], mix [M, X, s, s], gain [X, K] and start [X / each, K, E].

    A program descends and carries the states through a sequence. It writes them, [M (+ 1 where `LAST`), X, s, K, E] as
    carried into each chunk, and a and u1 [M, X, C, E] and u2 [M, X, C, K] for the reads.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    x = tl.program_id(0).to(tl.int64)
    start1, start2 = start1 + x // each * SIZE, start2 + x // each * SIZE
    g = tl.load(gain + x * K + tl.arange(0, KP), mask=tl.arange(0, KP) < K, other=0.0)[None, :] if NORM else 0.0
    d1, d2, s1, s2 = (
        tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM), tl.zeros([KP, EP], SUM)
    )  # fmt: skip
    if not TO_START:
        d1, d2 = tile(start1, K, E, KP, EP), tile(start2, K, E, KP, EP)
    for m in range(M):
        at = m * X + x
        place = at * SLOTS * SIZE
        put(states1 + place, d1, K, E, KP, EP)
        put(states2 + place, d2, K, E, KP, EP)
        if SLOTS == 2:
            put(states1 + place + SIZE, s1, K, E, KP, EP)
            put(states2 + place + SIZE, s2, K, E, KP, EP)
        k_m, v_m = tile(k + at * C * K, C, K, CP, KP), tile(v + at * C * K, C, K, CP, KP)
        w1, w2 = d1, d2
        if TO_START:
            w1, w2 = w1 + tile(start1, K, E, KP, EP), w2 + tile(start2, K, E, KP, EP)
        _, a_m, u1_m, u2_m, _, _ = descend(k_m, v_m, w1, w2, g, floor, K, L2, NORM, SKIP, IP, SUM)
        put(a + at * C * E, a_m, C, E, CP, EP)
        put(u1 + at * C * E, u1_m, C, E, CP, EP)
        put(u2 + at * C * K, u2_m, C, K, CP, KP)
        # N' = mix N + sum_j e_j narrow_j wide_j^T.
        e = numbers(ends + at * C * SLOTS, 0, C, CP, SLOTS)[:, None]
        if SCALED:
            decay = tl.load(mix + at * SLOTS * SLOTS)
            d1, d2 = d1 * decay, d2 * decay
        if SLOTS == 2:
            carry, momentum = tl.load(mix + at * SLOTS * SLOTS + 1), tl.load(mix + at * SLOTS * SLOTS + 3)
            d1, d2, s1, s2 = d1 + carry * s1, d2 + carry * s2, s1 * momentum, s2 * momentum
            e_s = numbers(ends + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
            s1 += product(tl.trans(k_m * e_s), u1_m, IP, SUM)
            s2 += product(tl.trans(u2_m * e_s), a_m, IP, SUM)
        d1 += product(tl.trans(k_m * e), u1_m, IP, SUM)
        d2 += product(tl.trans(u2_m * e), a_m, IP, SUM)
    if LAST:
        place = (M * X + x) * SLOTS * SIZE
        put(states1 + place, d1, K, E, KP, EP)
        put(states2 + place, d2, K, E, KP, EP)


@triton.jit(do_not_specialize=["X", "C", "each"])
def reads(
    q, k, writes, factors, start1, start2, states1, states2, a, u1, u2, y, X, C, each,
    K: tl.constexpr, KP: tl.constexpr, CP: tl.constexpr, SLOTS: tl.constexpr, SCALED: tl.constexpr,
    TO_START: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Read also q [M, X, C, K], writes [M, X, C, C] and factors [M, X, C, s]; write y [M, X, C, K].

    A program reads one chunk of one sequence. Every token has its own W_t x = W^0 x + sum_s f_ts N_s x + sum_j c_tj u_j
    (a_j . x), layer after layer.
    """
    E: tl.constexpr = 4 * K
    EP: tl.constexpr = 4 * KP
    SIZE: tl.constexpr = K * E
    at = tl.program_id(0).to(tl.int64)
    place, first = at * SLOTS * SIZE, at % X // each * SIZE
    q_m, c_m = tile(q + at * C * K, C, K, CP, KP), tile(writes + at * C * C, C, C, CP, CP)
    scores = c_m * product(q_m, tl.trans(tile(k + at * C * K, C, K, CP, KP)), IP, SUM)
    own = product(scores, tile(u1 + at * C * E, C, E, CP, EP), IP, SUM)
    f = numbers(factors + at * C * SLOTS, 0, C, CP, SLOTS)[:, None] if SCALED else 1.0
    own += product(q_m * f, tile(states1 + place, K, E, KP, EP), IP, SUM)
    if SLOTS == 2:
        f_s = numbers(factors + at * C * SLOTS, 1, C, CP, SLOTS)[:, None]
        own += product(q_m * f_s, tile(states1 + place + SIZE, K, E, KP, EP), IP, SUM)
    if TO_START:
        own += product(q_m, tile(start1 + first, K, E, KP, EP), IP, SUM)
    cdf, _ = phi(own)
    hidden = own * cdf
    scores = c_m * product(hidden, tl.trans(tile(a + at * C * E, C, E, CP, EP)), IP, SUM)
    out = product(scores, tile(u2 + at * C * K, C, K, CP, KP), IP, SUM)
    out += product(hidden, tl.trans(tile(states2 + place, K, E, KP, EP)), IP, SUM) * f
    if SLOTS == 2:
        out += product(hidden, tl.trans(tile(states2 + place + SIZE, K, E, KP, EP)), IP, SUM) * f_s
    if TO_START:
        out += product(hidden, tl.trans(tile(start2 + first, K, E, KP, EP)), IP, SUM)
    put(y + at * C * K, out, C, K, CP, KP)

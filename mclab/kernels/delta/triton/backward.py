"""The (gated) delta rule, backward: what each chunk needs, then the gradients of the states from the last chunk to the
first, then those of the tokens.

Every program writes only to memory of its own, so there are no atomics. Shapes and programs as in forward.py.

With g the gradient of H after a chunk, G = K K^T, P = tril(c * Q K^T): dE = P^T dY + diag(c_C) K g, dR = U^T dE,
dV = dR, dP = dY E^T, d(c * G) = -dR E^T below the diagonal; the gradient of H before the chunk is h = A_C g + (A Q)^T
dY - (A K)^T dR. Of these only g and dR wait for later chunks, with dR = N g + U^T P^T dY, N = U^T diag(c_C) K.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.delta.triton.chunk import closing, decays, solution
from mclab.kernels.tiles import product, products_backward, put, put_numbers, row, tile


@triton.jit(do_not_specialize=["C"])
def prepare_backward(
    q, k, v, beta, logs, states, dy, e, n, dv, grads, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Write e and N, and what the reads give: to dv, and to grads [M + 1, X, K, V], those of the states carried into
    each chunk."""
    at = tl.program_id(0).to(tl.int64)
    q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
    b, between, decay = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
    c = between * b[None, :]
    _, solved = solution(k_m, c, CP, SUM)
    left = tile(v + at * C * V, C, V, CP, VP)
    left -= decay[:, None] * product(k_m, tile(states + at * K * V, K, V, KP, VP), IP, SUM)
    put(e + at * C * V, product(solved, left, IP, SUM), C, V, CP, VP)
    back, dy_m = tl.trans(solved), tile(dy + at * C * V, C, V, CP, VP)
    put(n + at * C * K, product(back, row(c, CP - 1, CP)[:, None] * k_m, IP, SUM), C, K, CP, KP)
    from_reads = product(tl.trans(product(q_m, tl.trans(k_m), IP, SUM) * c), dy_m, IP, SUM)
    put(dv + at * C * V, product(back, from_reads, IP, SUM), C, V, CP, VP)
    put(grads + at * K * V, product(tl.trans(q_m * decay[:, None]), dy_m, IP, SUM), K, V, KP, VP)


@triton.jit(do_not_specialize=["M", "X", "C", "kept"])
def states_backward(
    k, beta, logs, place_kept, dkept, n, dv, grads, dstart, M, X, C, kept,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    START: tl.constexpr, KEEPS: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Complete dv and grads.

    `dkept` [X, kept, K, V] are the gradients of the states after the kept chunks. `place_kept` [M] is the index in
    `dkept` of each chunk, or -1 for a chunk that is not kept.
    """
    x = tl.program_id(0).to(tl.int64)
    g = tl.zeros([KP, VP], SUM)
    for back in range(M):
        m = M - 1 - back
        at = m * X + x
        if KEEPS:
            which = tl.load(place_kept + m)
            if which >= 0:
                g += tile(dkept + (x * kept + which) * K * V, K, V, KP, VP)
        decay, _, last = closing(beta + at * C, logs + at * C, C, CP, GATED, SUM)
        dr = tile(dv + at * C * V, C, V, CP, VP)
        dr += product(tile(n + at * C * K, C, K, CP, KP), g, IP, SUM)
        # What is written over has been read by all threads.
        tl.debug_barrier()
        put(dv + at * C * V, dr, C, V, CP, VP)
        put(grads + (at + X) * K * V, g, K, V, KP, VP)
        g = g * last + tile(grads + at * K * V, K, V, KP, VP)
        g -= product(tl.trans(tile(k + at * C * K, C, K, CP, KP) * decay[:, None]), dr, IP, SUM)
    if START:
        put(dstart + x * K * V, g, K, V, KP, VP)


@triton.jit(do_not_specialize=["X", "C"])
def tokens_backward(
    q, k, beta, logs, states, dy, e, dv, grads, dq, dk, dbeta, dlogs, X, C,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Write the gradients of q, k, beta and logs from those of the states."""
    at, place = tl.program_id(0).to(tl.int64), tl.arange(0, CP)
    q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
    b, between, decay = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
    c = between * b[None, :]
    e_m, g = tile(e + at * C * V, C, V, CP, VP), tile(grads + (at + X) * K * V, K, V, KP, VP)
    # Back through H' = A_C H + K^T diag(c_C) E.
    dk_m = product(e_m, tl.trans(g), IP, SUM)
    dc = tl.where(place[:, None] == CP - 1, tl.sum(dk_m * k_m, 1)[None, :], 0.0)
    dk_m = dk_m * row(c, CP - 1, CP)[:, None]
    # Back through the reads, Y = A Q H + P E, and through (I + tril(c * G, -1)) E = V - A K H.
    dy_m, dr = tile(dy + at * C * V, C, V, CP, VP), tile(dv + at * C * V, C, V, CP, VP)
    dread = tl.where(place[:, None] >= place[None, :], product(dy_m, tl.trans(e_m), IP, SUM), 0.0)
    dscores = tl.where(place[:, None] > place[None, :], -product(dr, tl.trans(e_m), IP, SUM), 0.0)
    dc += dread * product(q_m, tl.trans(k_m), IP, SUM) + dscores * product(k_m, tl.trans(k_m), "ieee", SUM)
    dread, dscores = dread * c, dscores * c
    h = tile(states + at * K * V, K, V, KP, VP)
    through_q, through_k = product(dy_m, tl.trans(h), IP, SUM), product(dr, tl.trans(h), IP, SUM)
    put(dq + at * C * K, product(dread, k_m, IP, SUM) + through_q * decay[:, None], C, K, CP, KP)
    dk_m += product(tl.trans(dread), q_m, IP, SUM) - through_k * decay[:, None]
    dk_m += product(dscores + tl.trans(dscores), k_m, IP, SUM)
    put(dk + at * C * K, dk_m, C, K, CP, KP)
    put_numbers(dbeta + at * C, tl.sum(dc * between, 0), 0, C, CP, 1)
    if GATED:
        ddecay = tl.sum(through_q * q_m, 1) - tl.sum(through_k * k_m, 1)
        ddecay += tl.where(place == CP - 1, tl.sum(g * h), 0.0)
        dlogs_m = products_backward(dc * b[None, :], between, ddecay * decay)
        put_numbers(dlogs + at * C, dlogs_m, 0, C, CP, 1)

"""This kernel is the backward pass of the (gated) delta rule, from the last chunk to the first.

It computes each chunk again from the state that was carried into the chunk. No two programs write to the same memory,
so there are no atomics. Shapes as in forward.py.

With g the gradient of H after a chunk, G = K K^T, P = tril(c * Q K^T): dE = P^T dY + diag(c_C) K g, dR = U^T dE, dV =
dR, dP = dY E^T, d(c * G) = -dR E^T below the diagonal; the gradient of H before the chunk is h = A_C g + (A Q)^T dY -
(A K)^T dR.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.delta.triton.chunk import decays, residuals
from mclab.kernels.tiles import product, products_backward, put, put_numbers, tile


@triton.jit(do_not_specialize=["M", "X", "C", "kept"])
def backward(
    q, k, v, beta, logs, states, dy, place_kept, dkept, dq, dk, dv, dbeta, dlogs, dstart, M, X, C, kept,
    K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, VP: tl.constexpr, CP: tl.constexpr, GATED: tl.constexpr,
    START: tl.constexpr, KEEPS: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """`dkept` [X, kept, K, V] are the gradients of the states after the kept chunks.

    `place_kept` [M] is the index in `dkept` of each chunk, or -1 for a chunk that is not kept.
    """
    x, place = tl.program_id(0).to(tl.int64), tl.arange(0, CP)
    strictly = place[:, None] > place[None, :]
    g = tl.zeros([KP, VP], SUM)
    for back in range(M):
        m = M - 1 - back
        at = m * X + x
        if KEEPS:
            which = tl.load(place_kept + m)
            if which >= 0:
                g += tile(dkept + (x * kept + which) * K * V, K, V, KP, VP)
        q_m, k_m = tile(q + at * C * K, C, K, CP, KP), tile(k + at * C * K, C, K, CP, KP)
        h, dy_m = tile(states + at * K * V, K, V, KP, VP), tile(dy + at * C * V, C, V, CP, VP)
        # Compute the chunk's forward pass again.
        b, between, decay, ends, last = decays(beta + at * C, logs + at * C, C, CP, GATED, SUM)
        c = between * b[None, :]
        scores, solved, e = residuals(k_m, tile(v + at * C * V, C, V, CP, VP), h, c, decay, CP, IP, SUM)
        read = product(q_m, tl.trans(k_m), IP, SUM)
        # Back through H' = A_C H + K^T diag(c_C) E and Y = A Q H + P E.
        pulled = product(k_m, g, IP, SUM)
        de = pulled * ends[:, None] + product(tl.trans(read * c), dy_m, IP, SUM)
        dends = tl.sum(pulled * e, 1)
        dk_m = product(e, tl.trans(g), IP, SUM) * ends[:, None]
        dread = tl.where(place[:, None] >= place[None, :], product(dy_m, tl.trans(e), IP, SUM), 0.0)
        # Back through (I + tril(c * G, -1)) E = V - A K H.
        dr = product(tl.trans(solved), de, IP, SUM)
        put(dv + at * C * V, dr, C, V, CP, VP)
        dscores = tl.where(strictly, -product(dr, tl.trans(e), IP, SUM), 0.0)
        dc = dread * read + dscores * scores
        dc += tl.where(place[:, None] == CP - 1, dends[None, :], 0.0)
        dread, dscores = dread * c, dscores * c
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
            g = g * last
        g += product(tl.trans(q_m * decay[:, None]), dy_m, IP, SUM)
        g -= product(tl.trans(k_m * decay[:, None]), dr, IP, SUM)
    if START:
        put(dstart + x * K * V, g, K, V, KP, VP)

"""Functions with which both kernels compute one chunk of the (gated) delta rule.

The equations are those of mclab/kernels/delta/chunkwise.py. Shapes: C tokens, K key width, V value width, padded to
powers of two, CP, KP and VP; the padding stays zero. The state is H = S^T [K, V].
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.tiles import at, numbers, product, products, row


@triton.jit
def inverse(lower, CP: tl.constexpr, SUM: tl.constexpr):
    """Return (I + L)^-1 for a strictly lower triangular L, by substitution.

    Row i of (I + L)^-1 - I is -L_i - sum_j L_ij times row j.
    """
    place, made = tl.arange(0, CP), -lower
    for i in range(2, CP):
        own = row(made, i, CP)
        made = tl.where(place[:, None] == i, (own + tl.sum(own[:, None] * made, 0))[None, :], made)
    return made + tl.where(place[:, None] == place[None, :], 1.0, 0.0).to(SUM)


@triton.jit
def decays(beta, logs, C, CP: tl.constexpr, GATED: tl.constexpr, SUM: tl.constexpr):
    """Return beta, L, A, c_Cj and A_C.

    A padded token has beta 0 and log alpha 0, so the last row is the end of the chunk, however short the chunk is.
    """
    place, b = tl.arange(0, CP), numbers(beta, 0, C, CP, 1)
    if GATED:
        total, between = products(numbers(logs, 0, C, CP, 1), CP)
        decay = tl.exp(total)
    else:
        between = tl.where(place[:, None] >= place[None, :], 1.0, 0.0).to(SUM)
        decay = tl.zeros([CP], SUM) + 1.0
    return b, between, decay, row(between, CP - 1, CP) * b, at(decay, CP - 1, CP)


@triton.jit
def residuals(k, v, h, c, decay, CP: tl.constexpr, IP: tl.constexpr, SUM: tl.constexpr):
    """Return K K^T, the inverse U, and E = U (V - A K H).

    U is computed exactly in every precision of training: the rounding of K K^T would grow in it.
    """
    place = tl.arange(0, CP)
    scores = product(k, tl.trans(k), "ieee", SUM)
    solved = inverse(tl.where(place[:, None] > place[None, :], c * scores, 0.0), CP, SUM)
    return scores, solved, product(solved, v - decay[:, None] * product(k, h, IP, SUM), IP, SUM)

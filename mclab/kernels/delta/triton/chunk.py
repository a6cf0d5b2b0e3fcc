"""The computation of one chunk of the (gated) delta rule, for the kernels.

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
    """Return beta, L and A. c is L beta, and its last row c_C."""
    place, b = tl.arange(0, CP), numbers(beta, 0, C, CP, 1)
    if GATED:
        total, between = products(numbers(logs, 0, C, CP, 1), CP)
        decay = tl.exp(total)
    else:
        between = tl.where(place[:, None] >= place[None, :], 1.0, 0.0).to(SUM)
        decay = tl.zeros([CP], SUM) + 1.0
    return b, between, decay


@triton.jit
def closing(beta, logs, C, CP: tl.constexpr, GATED: tl.constexpr, SUM: tl.constexpr):
    """Return A, c_C and A_C, what takes the state to the end of the chunk.

    A padded token has beta 0 and log alpha 0, so the last row is the end of the chunk, however short the chunk is.
    """
    b = numbers(beta, 0, C, CP, 1)
    total = tl.zeros([CP], SUM)
    if GATED:
        total = tl.cumsum(numbers(logs, 0, C, CP, 1), 0)
    end = at(total, CP - 1, CP)
    return tl.exp(total), tl.exp(end - total) * b, tl.exp(end)


@triton.jit
def solution(k, c, CP: tl.constexpr, SUM: tl.constexpr):
    """Return K K^T and U = (I + tril(c * K K^T, -1))^-1.

    Both are computed exactly in every precision of training: the rounding of K K^T would grow in U.
    """
    place = tl.arange(0, CP)
    scores = product(k, tl.trans(k), "ieee", SUM)
    return scores, inverse(tl.where(place[:, None] > place[None, :], c * scores, 0.0), CP, SUM)

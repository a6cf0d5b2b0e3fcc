"""These kernels compute from rates how the writes of a chunk's tokens enter later tokens' weights, and go back.

The equations are those of mclab/kernels/fastweight/rates.py, with decay and momentum. Each program computes one chunk
of one sequence, independently of the other programs. Shapes: Q chunks of all sequences, C tokens, padded to CP.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.tiles import (
    at,
    numbers,
    product,
    products,
    products_backward,
    put,
    put_numbers,
    row,
    tile,
)


@triton.jit
def known(eta, log_alpha, log_beta, C, CP: tl.constexpr, SUM: tl.constexpr):
    """Return the numbers of a chunk that both kernels need: eta, La, Lb, c = La Lb, A, B, b_C and beta_0."""
    e = numbers(eta, 0, C, CP, 1)
    logs = numbers(log_beta, 0, C, CP, 1)
    total_alpha, alpha = products(numbers(log_alpha, 0, C, CP, 1), CP)
    total_beta, beta = products(logs, CP)
    both, first = product(alpha, beta, "ieee", SUM), tl.exp(at(logs, 0, CP))
    carry = tl.sum(tl.where(tl.arange(0, CP)[None, :] == 0, both, 0.0), 1) * first
    return e, alpha, beta, both, tl.exp(total_alpha), carry, tl.exp(at(total_beta, C - 1, CP)), first


@triton.jit(do_not_specialize=["X", "C"])
def forward(
    eta, log_alpha, log_beta, last, writes, factors, ends, mix, X, C, CP: tl.constexpr, SUM: tl.constexpr
):  # fmt: skip
    """Write the coefficients of all chunks to `writes` [M, X, C, C], `factors` and `ends` [M, X, C, 2], `mix` [M, X, 2,
    2].

    The arguments are eta and the logarithms [M, X, C], and `last` [M], the index of each chunk's last token.
    """
    q = tl.program_id(0).to(tl.int64)
    end = tl.load(last + q // X)
    e, _, beta, both, decay, carry, momentum, _ = known(
        eta + q * C, log_alpha + q * C, log_beta + q * C, C, CP, SUM
    )  # fmt: skip
    written = both * e[None, :]
    put(writes + q * C * C, written, C, C, CP, CP)
    put_numbers(factors + q * C * 2, decay, 0, C, CP, 2)
    put_numbers(factors + q * C * 2, carry, 1, C, CP, 2)
    put_numbers(ends + q * C * 2, row(written, end, CP), 0, C, CP, 2)
    put_numbers(ends + q * C * 2, row(beta, C - 1, CP) * e, 1, C, CP, 2)
    tl.store(mix + q * 4, at(decay, end, CP))
    tl.store(mix + q * 4 + 1, at(carry, end, CP))
    tl.store(mix + q * 4 + 2, 0.0)
    tl.store(mix + q * 4 + 3, momentum)


@triton.jit(do_not_specialize=["X", "C"])
def backward(
    eta, log_alpha, log_beta, last, dwrites, dfactors, dends, dmix, deta, dlog_alpha, dlog_beta, X, C,
    CP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Compute the backward pass of `_Momentum` in rates.py, and add the gradients that come through ends and mix."""
    q, place = tl.program_id(0).to(tl.int64), tl.arange(0, CP)
    end = tl.load(last + q // X)
    e, alpha, beta, both, decay, carry, momentum, first = known(
        eta + q * C, log_alpha + q * C, log_beta + q * C, C, CP, SUM
    )  # fmt: skip
    at_end = place == end
    dwritten = tile(dwrites + q * C * C, C, C, CP, CP)
    dwritten += tl.where(at_end[:, None], numbers(dends + q * C * 2, 0, C, CP, 2)[None, :], 0.0)
    ddecay = numbers(dfactors + q * C * 2, 0, C, CP, 2) + tl.where(at_end, tl.load(dmix + q * 4), 0.0)
    dcarry = numbers(dfactors + q * C * 2, 1, C, CP, 2) + tl.where(at_end, tl.load(dmix + q * 4 + 1), 0.0)
    dended = numbers(dends + q * C * 2, 1, C, CP, 2)
    put_numbers(deta + q * C, tl.sum(dwritten * both, 0) + dended * row(beta, C - 1, CP), 0, C, CP, 1)
    dboth = dwritten * e[None, :] + tl.where(place[None, :] == 0, (dcarry * first)[:, None], 0.0)
    dalpha = product(dboth, tl.trans(beta), "ieee", SUM)
    dbeta = product(tl.trans(alpha), dboth, "ieee", SUM)
    dbeta += tl.where(place[:, None] == C - 1, (dended * e)[None, :], 0.0)
    put_numbers(dlog_alpha + q * C, products_backward(dalpha, alpha, ddecay * decay), 0, C, CP, 1)
    own = products_backward(dbeta, beta, 0.0) + tl.load(dmix + q * 4 + 3) * momentum
    own += tl.where(place == 0, tl.sum(dcarry * carry, 0), 0.0)
    put_numbers(dlog_beta + q * C, own, 0, C, CP, 1)

"""What Triton kernels of more than one family are made of. Imported by kernels alone: it needs triton.

Shapes: a matrix [R, W] is padded to powers of two, RP and WP, of zeros; C tokens of a chunk, padded to CP.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def product(x, y, IP: tl.constexpr, SUM: tl.constexpr):
    """x y, with a precision that is always said: Triton's own default cuts fp32 to tf32."""
    return tl.dot(x, y, input_precision=IP, out_dtype=SUM)


@triton.jit
def tile(base, R, W, RP: tl.constexpr, WP: tl.constexpr):
    """A matrix [R, W], zero beyond it: [RP, WP]."""
    rows, columns = tl.arange(0, RP), tl.arange(0, WP)
    inside = (rows[:, None] < R) & (columns[None, :] < W)
    return tl.load(base + rows[:, None] * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def put(base, x, R, W, RP: tl.constexpr, WP: tl.constexpr):
    """The reverse of `tile`."""
    rows, columns = tl.arange(0, RP), tl.arange(0, WP)
    tl.store(base + rows[:, None] * W + columns[None, :], x, mask=(rows[:, None] < R) & (columns[None, :] < W))


@triton.jit
def numbers(base, slot, C, CP: tl.constexpr, SLOTS: tl.constexpr):
    """A slot's column of [C, SLOTS]: [CP]."""
    rows = tl.arange(0, CP)
    return tl.load(base + rows * SLOTS + slot, mask=rows < C, other=0.0)


@triton.jit
def put_numbers(base, x, slot, C, CP: tl.constexpr, SLOTS: tl.constexpr):
    """The reverse of `numbers`."""
    rows = tl.arange(0, CP)
    tl.store(base + rows * SLOTS + slot, x, mask=rows < C)


@triton.jit
def row(x, t, CP: tl.constexpr):
    """Row t of [CP, CP]: [CP]."""
    return tl.sum(tl.where(tl.arange(0, CP)[:, None] == t, x, 0.0), 0)


@triton.jit
def at(x, t, CP: tl.constexpr):
    """Number t of [CP]."""
    return tl.sum(tl.where(tl.arange(0, CP) == t, x, 0.0), 0)


@triton.jit
def products(logs, CP: tl.constexpr):
    """The running sum, and L_tj, the product of what they are logarithms of over j < m <= t, zero above the diagonal:
    [CP], [CP, CP]."""
    total, place = tl.cumsum(logs, 0), tl.arange(0, CP)
    seen = place[:, None] >= place[None, :]
    return total, tl.where(seen, tl.exp(tl.where(seen, total[:, None] - total[None, :], 0.0)), 0.0)


@triton.jit
def products_backward(grad, made, more):
    """The gradient of the logarithms from those of L and, `more`, of the running sum."""
    own = grad * made
    return tl.cumsum(tl.sum(own, 1) - tl.sum(own, 0) + more, 0, reverse=True)

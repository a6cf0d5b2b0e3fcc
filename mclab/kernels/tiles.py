"""Functions that Triton kernels of more than one family use. Only kernels import them: they need triton.

Shapes: a matrix [R, W] is padded with zeros to powers of two, RP and WP; C tokens of a chunk are padded to CP.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def product(x, y, IP: tl.constexpr, SUM: tl.constexpr):
    """Return x y with an explicit precision, since Triton's default reduces fp32 to tf32."""
    return tl.dot(x, y, input_precision=IP, out_dtype=SUM)


@triton.jit
def tile(base, R, W, RP: tl.constexpr, WP: tl.constexpr):
    """Return a matrix [R, W], loaded from memory and padded with zeros to [RP, WP]."""
    rows, columns = tl.arange(0, RP), tl.arange(0, WP)
    inside = (rows[:, None] < R) & (columns[None, :] < W)
    return tl.load(base + rows[:, None] * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def put(base, x, R, W, RP: tl.constexpr, WP: tl.constexpr):
    """Store `x` as a matrix [R, W]; the reverse of `tile`."""
    rows, columns = tl.arange(0, RP), tl.arange(0, WP)
    tl.store(base + rows[:, None] * W + columns[None, :], x, mask=(rows[:, None] < R) & (columns[None, :] < W))


@triton.jit
def numbers(base, slot, C, CP: tl.constexpr, SLOTS: tl.constexpr):
    """Return column `slot` of a matrix [C, SLOTS], loaded from memory: [CP]."""
    rows = tl.arange(0, CP)
    return tl.load(base + rows * SLOTS + slot, mask=rows < C, other=0.0)


@triton.jit
def put_numbers(base, x, slot, C, CP: tl.constexpr, SLOTS: tl.constexpr):
    """Store `x` as column `slot` of a matrix [C, SLOTS]; the reverse of `numbers`."""
    rows = tl.arange(0, CP)
    tl.store(base + rows * SLOTS + slot, x, mask=rows < C)


@triton.jit
def row(x, t, CP: tl.constexpr):
    """Return row t of `x` [CP, CP], [CP]."""
    return tl.sum(tl.where(tl.arange(0, CP)[:, None] == t, x, 0.0), 0)


@triton.jit
def at(x, t, CP: tl.constexpr):
    """Return element t of `x` [CP]."""
    return tl.sum(tl.where(tl.arange(0, CP) == t, x, 0.0), 0)


@triton.jit
def products(logs, CP: tl.constexpr):
    """Return the running sum of `logs` [CP], and the products L [CP, CP].

    L_tj is the product over j < m <= t of the numbers whose logarithms are `logs`, zero above the diagonal.
    """
    total, place = tl.cumsum(logs, 0), tl.arange(0, CP)
    seen = place[:, None] >= place[None, :]
    return total, tl.where(seen, tl.exp(tl.where(seen, total[:, None] - total[None, :], 0.0)), 0.0)


@triton.jit
def products_backward(grad, made, more):
    """Return the gradient of the logarithms, from `grad`, that of L, and `more`, that of the running sum."""
    own = grad * made
    return tl.cumsum(tl.sum(own, 1) - tl.sum(own, 0) + more, 0, reverse=True)

"""The computation of one chunk of a memory of depth 2, for the kernels.

Both layers are stored [K, E], E = 4 K, narrow side first (states.py): layer 1 maps x to x N, layer 2 maps x to x N^T.
Shapes: C tokens, K key width (V = K), all padded to powers of two, CP, KP and EP; the padding stays zero.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.tiles import product, tile

#: 1 / sqrt(2), 1 / sqrt(2 pi).
ROOT: tl.constexpr = tl.constexpr(0.7071067811865476)
DENSITY: tl.constexpr = tl.constexpr(0.3989422804014327)


@triton.jit
def phi(z):
    """Return the cdf of the standard normal distribution, and its density."""
    return 0.5 * (1 + tl.erf(z * ROOT)), tl.exp(-0.5 * z * z) * DENSITY


@triton.jit
def weights(states, start, place, K: tl.constexpr, KP: tl.constexpr, TO_START: tl.constexpr):
    """W carried into a chunk. It is loaded again wherever it is needed, as there are too few registers to keep it."""
    w = tile(states + place, K, 4 * K, KP, 4 * KP)
    if TO_START:
        w += tile(start, K, 4 * K, KP, 4 * KP)
    return w


@triton.jit
def mean(x, y, K: tl.constexpr):
    """Return the mean of x y over the last axis, [CP, 1]."""
    return (tl.sum(x * y, 1) / K)[:, None]


@triton.jit
def last(
    h, k, v, gain, floor, K: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr
):  # fmt: skip
    """Return the last layer's update u, and what `last_backward` needs.

    That is 1 / rms, h_hat = h / rms, the error e, gain e, and the mean of gain e h_hat, as in `descent._last`.
    """
    if NORM:
        inverse = tl.rsqrt(mean(h, h, K) + floor)
        unit = h * inverse
        if L2:
            wanted = v - k if SKIP else v
            error = 2 * (wanted - gain * unit)
        else:
            error = v
        pushed = gain * error
        m = mean(pushed, unit, K)
        u = (pushed - unit * m) * inverse
    else:
        inverse, unit, pushed, m = mean(h, h, K), h, h, mean(h, h, K)
        if L2:
            wanted = v - k if SKIP else v
            error = 2 * (wanted - h)
        else:
            error = v
        u = error
    return u, inverse, unit, error, pushed, m


@triton.jit
def descend(
    k, v, w1, w2, gain, floor, K: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr, SKIP: tl.constexpr,
    IP: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Descent of all tokens at the same weights: return the hidden z and a, u of both layers, r = W_2^T u_2, and the
    output h, which is v where nothing depends on it."""
    z = product(k, w1, IP, SUM)
    cdf, density = phi(z)
    a = z * cdf
    h = product(a, tl.trans(w2), IP, SUM) if L2 or NORM else v
    u2, _, _, _, _, _ = last(h, k, v, gain, floor, K, L2, NORM, SKIP)
    r = product(u2, w2, IP, SUM)
    return z, a, r * (cdf + z * density), u2, r, h


@triton.jit
def last_backward(
    grad, inverse, unit, error, pushed, m, gain, K: tl.constexpr, L2: tl.constexpr, NORM: tl.constexpr
):  # fmt: skip
    """Return the gradients of h and v, and that of the gain for each token, from the gradient of u.

    The equations are those of `descent._last_backward`.
    """
    if NORM:
        p, q = mean(grad, unit, K), mean(pushed, grad, K)
        grad_pushed = (grad - unit * p) * inverse
        grad_h = (unit * (3 * p * m - q) - m * grad - p * pushed) * (inverse * inverse)
        grad_v, grad_gain = gain * grad_pushed, error * grad_pushed
        if L2:
            grad_v = grad_v * 2
            grad_gain = grad_gain - grad_v * unit
            through = gain * grad_v
            grad_h -= (through - unit * mean(through, unit, K)) * inverse
    else:
        grad_gain, grad_h, grad_v = grad, -2 * grad, grad
        if L2:
            grad_v = 2 * grad
    return grad_h, grad_v, grad_gain

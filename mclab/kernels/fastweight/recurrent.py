"""This module writes one token into fast weights: the definition that the chunk form is tested against.

Shapes as in net.py. See docs/equations.md#dla, docs/equations.md#titans.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from mclab.kernels.fastweight.net import Net

Matrices = tuple[Tensor, ...]


def step(
    net: Net,
    anchor: Sequence[Tensor],
    weights: Sequence[Tensor],
    momentum: Sequence[Tensor],
    rest: Sequence[Tensor],
    token: tuple[Tensor, Tensor],
    rates: tuple[Tensor, Tensor, Tensor],
) -> tuple[Matrices, Matrices]:
    """Return the weights W_t = rest + alpha (W_{t-1} - rest) + S_t and the momentum S_t = beta S_{t-1} - eta grad.

    The gradient is taken at `anchor`, the weights at the chunk's start. Alpha decays the weights toward `rest`. `token`
    is (k [X, K], v [X, V]); `rates` are (eta, alpha, beta), each [X].
    """
    k, v = token
    eta, alpha, beta = (rate[:, None, None] for rate in rates)
    inputs, updates = net.writes(anchor, k.unsqueeze(1), v.unsqueeze(1))
    moved = tuple(beta * s + eta * u.mT @ a for s, a, u in zip(momentum, inputs, updates, strict=True))
    new = (r + alpha * (w - r) + s for r, w, s in zip(rest, weights, moved, strict=True))
    return tuple(new), moved


def read(net: Net, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return M(x) of one token, [X, V], from `x` [X, K]."""
    return net.read([partial(_times, w) for w in weights], x.unsqueeze(1)).squeeze(1)


def _times(w: Tensor, h: Tensor) -> Tensor:
    return h @ w.mT


def zeros(weights: Sequence[Tensor]) -> Matrices:
    """Return zeros of the shapes of `weights`: no momentum, or an empty memory."""
    return tuple(torch.zeros_like(w) for w in weights)

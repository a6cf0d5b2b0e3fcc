"""Memora token by token: the definition that the chunk form is tested against.

Shapes: X folded batch (sequences, heads and, where segments restart, segments), K key width, V value width. Logits Z
and weights W are [X, V, K].

See docs/equations.md#memora.
"""

import torch
from torch import Tensor


def formed(logits: Tensor) -> Tensor:
    """Return the weights W = K sinh Z / sum cosh Z.

    That is K (P+ - P-), where [P+, P-] is the softmax of [Z, -Z] over a row's 2 K inputs.
    """
    top = logits.detach().abs().amax(-1, keepdim=True)
    up, down = torch.exp(logits - top), torch.exp(-logits - top)
    return (up - down) * (logits.shape[-1] / (up + down).sum(-1, keepdim=True))


def step(
    logits: Tensor, anchor: Tensor, token: tuple[Tensor, Tensor], rates: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the logits Z_t = alpha Z_{t-1} - eta dL/dW, with L = |W k - v|^2 at W = `anchor`, and the weights of Z_t.

    The logits of P- get the negative gradient and so stay -Z. `token` is (k [X, K], v [X, V]); `rates` are (eta,
    alpha), each [X].
    """
    k, v = token
    eta, alpha = (rate[:, None, None] for rate in rates)
    error = 2 * (v - read(anchor, k))
    new = alpha * logits + eta * error[:, :, None] * k[:, None, :]
    return new, formed(new)


def read(weights: Tensor, x: Tensor) -> Tensor:
    """Return W x of one token, [X, V], from `x` [X, K]."""
    return torch.einsum("xvk,xk->xv", weights, x)

"""A `Net` is the function that a memory of depth d computes, and the gradient of its loss with respect to every layer.

M(x) = W x at depth 1. At depth d >= 2, h = W_d gelu(... gelu(W_1 x)) and M(x) = x + g * h / sqrt(mean(h^2) + floor);
the skip (x +) and the norm may each be left out. Shapes: X folded batch (sequences, heads, segments), C tokens, I width
into a layer, O width out of it, V value width. Matrices are [X, O, I]; vectors of C tokens [X, C, I].

See docs/equations.md#depth-and-norm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Objective = Literal["dot", "l2"]
#: Added to the mean square before the root if the config sets no floor. It only keeps the norm of zeros finite.
EPS = 1e-6


@dataclass(frozen=True)
class Net:
    """The function that a memory computes, and its loss.

    `gain` [X, 1, V] is g of the norm; None means that there is no norm. `skip` adds x. `floor` is added to the mean
    square in the norm. `objective` is the loss that is descended: "dot" is -<M(k), v> (DLA), "l2" is |M(k) - v|^2
    (Titans).
    """

    gain: Tensor | None
    objective: Objective
    skip: bool = False
    floor: float = EPS

    def read(self, layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> Tensor:
        """Return M(x). Each of `layers` is a function that applies one layer to its input."""
        h = layers[0](x)
        for layer in layers[1:]:
            h = layer(F.gelu(h))
        return self.finish(x, h)

    def finish(self, x: Tensor, h: Tensor) -> Tensor:
        """Return M(x), from the input x and the output h of the last layer."""
        branch = h if self.gain is None else self.gain * h * self.inverse_rms(h)
        return x + branch if self.skip else branch

    def inverse_rms(self, h: Tensor) -> Tensor:
        """Return 1 / sqrt(mean(h^2) + floor) of each vector, [..., 1]."""
        return torch.rsqrt(h.square().mean(-1, keepdim=True) + self.floor)

    def writes(self, weights: Sequence[Tensor], k: Tensor, v: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return one step of descent as rank-1 updates: the inputs a of each layer, and its updates u = -dL/d(output).

        The gradient of the layer's matrix at token j is -u_j a_j^T.
        """
        inputs, outputs = [k], []
        for weight in weights[:-1]:
            outputs.append(inputs[-1] @ weight.mT)
            inputs.append(F.gelu(outputs[-1]))
        u = self._last(weights[-1], inputs[-1], k, v)
        updates = [u]
        for weight, z in zip(reversed(weights[1:]), reversed(outputs), strict=True):
            updates.append(updates[-1] @ weight * gelu_slope(z))
        return inputs, updates[::-1]

    def _last(self, weight: Tensor, a: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.objective == "dot":
            return v if self.gain is None else self._through_norm(a @ weight.mT, v)
        h = a @ weight.mT
        error = 2 * (v - self.finish(k, h))
        return error if self.gain is None else self._through_norm(h, error)

    def _through_norm(self, h: Tensor, u: Tensor) -> Tensor:
        """Return u = (g u - h_hat mean(g u h_hat)) / rms, with h_hat = h / rms."""
        assert self.gain is not None
        inverse = self.inverse_rms(h)
        unit, scaled = h * inverse, self.gain * u
        return inverse * (scaled - unit * (scaled * unit).mean(-1, keepdim=True))


def gelu_slope(z: Tensor) -> Tensor:
    """Return d gelu(z) / dz of the exact form, Phi(z) + z phi(z)."""
    return 0.5 * (1 + torch.erf(z * math.sqrt(0.5))) + z * torch.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi))

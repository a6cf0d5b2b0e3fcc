"""One step of descent for the tokens of a chunk, all at the same weights, and its backward pass by hand.

The results are those of net.Net.writes under autograd, but without autograd. Layer l of d has input a_l (a_1 = k) and
output z_l = W_l a_l, a_{l+1} = gelu(z_l). Its update is u_l = -dL/dz_l = gelu'(z_l) r_l with r_l = W_{l+1}^T u_{l+1};
u_d follows from the loss. Matrices are stored as in states.py, [X, n, w], or [F, n, w] if they are shared; `widens`
says which side is the input. Other tensors are [X, C, width].

See docs/equations.md#depth-and-norm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.states import outer, product


@dataclass(frozen=True)
class Trace:
    """The tensors that the backward pass needs: gelu' and r gelu'' of each hidden z, and the norm of the last layer."""

    slopes: list[Tensor]
    bends: list[Tensor]
    last: "Last | None"


def descend(
    net: Net, matrices: Sequence[Tensor], widens: Sequence[bool], k: Tensor, v: Tensor
) -> tuple[list[Tensor], list[Tensor], Trace]:
    """Return the inputs a and the updates u of every layer, and the `Trace` for `descend_backward`."""
    inputs, outputs = [k], []
    for weight, wide in zip(matrices[:-1], widens, strict=False):
        outputs.append(_apply(weight, wide, inputs[-1]))
        inputs.append(F.gelu(outputs[-1]))
    last = None
    if net.objective == "l2" or net.gain is not None:
        last = _apply(matrices[-1], widens[-1], inputs[-1])
    update, kept = _last(net, last, k, v)
    updates = [update]
    slopes, bends = [], []
    for i in reversed(range(len(outputs))):
        through = _apply(matrices[i + 1], not widens[i + 1], updates[-1])
        slope, bend = _derivatives(outputs[i], inputs[i + 1])
        updates.append(through * slope)
        slopes.append(slope)
        bends.append(bend.mul_(through))
    return inputs, updates[::-1], Trace(slopes[::-1], bends[::-1], kept)


def descend_backward(
    net: Net,
    matrices: Sequence[Tensor],
    widens: Sequence[bool],
    known: tuple[Sequence[Tensor], Sequence[Tensor], Trace],
    grads: tuple[list[Tensor], list[Tensor]],
    into: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of k, v and gain, and add the gradients of W to `into`.

    `grads` are the gradients of a and u, lists that are overwritten. dr_l = du_l gelu', du_{l+1} += W dr_l, dW += u
    dr_l^T; dz_l = du_l r_l gelu'' + da_{l+1} gelu'; da_l += W^T dz_l, dW += dz_l a_l^T.
    """
    (inputs, updates, trace), (grad_inputs, grad_updates), depth = known, grads, len(matrices)
    bent: list[Tensor | None] = []
    for i in range(depth - 1):
        grad_through = grad_updates[i] * trace.slopes[i]
        bent.append(grad_updates[i] * trace.bends[i])
        grad_updates[i + 1] = _add_apply(grad_updates[i + 1], matrices[i + 1], widens[i + 1], grad_through)
        _outer(into[i + 1], widens[i + 1], grad_through, updates[i + 1])
    grad_last, grad_k, grad_v, grad_gain = _last_backward(net, trace.last, grad_updates[-1])
    bent.append(grad_last)
    for i in reversed(range(depth)):
        grad_output = bent[i]
        if grad_output is not None:
            grad_inputs[i] = _add_apply(grad_inputs[i], matrices[i], not widens[i], grad_output)
            _outer(into[i], widens[i], inputs[i], grad_output)
        if i:
            through = grad_inputs[i] * trace.slopes[i - 1]
            earlier = bent[i - 1]
            bent[i - 1] = through if earlier is None else earlier.add_(through)
    return grad_inputs[0] if grad_k is None else grad_inputs[0] + grad_k, grad_v, grad_gain


def _apply(weight: Tensor, stored: bool, x: Tensor) -> Tensor:
    return product(x, weight if stored else weight.mT)


def _add_apply(y: Tensor, weight: Tensor, stored: bool, x: Tensor) -> Tensor:
    own = weight if stored else weight.mT
    return torch.baddbmm(y, x, own) if x.shape[0] == own.shape[0] else y + product(x, own)


def _outer(into: Tensor, widens: bool, x: Tensor, y: Tensor) -> None:
    """Add the gradient of W from x, on its input side, and y, on its output side, to `into`."""
    outer(*((x, y) if widens else (y, x)), into)


def _derivatives(z: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return gelu' = Phi(z) + z phi(z) and gelu'' = (2 - z^2) phi(z)."""
    slope: Tensor = torch.ops.aten.gelu_backward(torch.ones_like(z), z)
    square = z * z
    bend = torch.exp(square * -0.5)
    return slope, bend.mul_(square.sub_(2).mul_(-1 / math.sqrt(2 * math.pi)))


@dataclass(frozen=True)
class Last:
    """The tensors of the last layer's norm that the backward pass needs.

    With h the output of the layer, `inverse` is 1 / rms, `unit` h_hat = h / rms, `error` e, `pushed` gain * e, and
    `mean` m the mean of gain * e * h_hat. Without the norm, u_d is e = -dL/dM(k), which is 2 (v - M(k)) or v. With the
    norm, u_d is P (gain e), where P = (I - h_hat h_hat^T / V) / rms is symmetric.
    """

    inverse: Tensor
    unit: Tensor
    error: Tensor
    pushed: Tensor
    mean: Tensor


def _last(net: Net, h: Tensor | None, k: Tensor, v: Tensor) -> tuple[Tensor, Last | None]:
    if net.gain is None:
        return (v.clone() if h is None else 2 * (v - net.finish(k, h))), None
    assert h is not None
    inverse = torch.rsqrt(_mean(h, h) + net.floor)
    unit = h * inverse
    wanted = v - k if net.skip else v
    error = v if net.objective == "dot" else torch.addcmul(wanted, net.gain, unit, value=-1).mul_(2)
    pushed = net.gain * error
    mean = _mean(pushed, unit)
    return torch.addcmul(pushed, unit, mean, value=-1).mul_(inverse), Last(inverse, unit, error, pushed, mean)


def _last_backward(
    net: Net, last: Last | None, grad: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor | None]:
    """Return the gradients of h, k, v and gain from that of u_d.

    Through u = P s, s = gain e: ds = P du and, with p, m, q the means of du h_hat, s h_hat, s du, dh = ((3 p m - q)
    h_hat - m du - p s) / rms^2; then through M(k) in e, dh += P dh_hat.
    """
    if net.gain is None or last is None:
        if net.objective == "dot":
            return None, None, grad, None
        back = -2 * grad
        return back, back if net.skip else None, 2 * grad, None
    inverse, unit, m = last.inverse, last.unit, last.mean
    p, q = _mean(grad, unit), _mean(last.pushed, grad)
    grad_pushed = torch.addcmul(grad, unit, p, value=-1).mul_(inverse)
    grad_h = unit * (3 * p * m).sub_(q)
    grad_h.addcmul_(m, grad, value=-1).addcmul_(p, last.pushed, value=-1).mul_(inverse.square())
    grad_error, grad_gain = net.gain * grad_pushed, last.error * grad_pushed
    if net.objective == "dot":
        return grad_h, None, grad_error, grad_gain.sum(1, keepdim=True)
    grad_v = grad_error.mul_(2)
    grad_gain.addcmul_(grad_v, unit, value=-1)
    through = net.gain * grad_v
    grad_h -= through.addcmul_(unit, _mean(through, unit), value=-1).mul_(inverse)
    return grad_h, -grad_v if net.skip else None, grad_v, grad_gain.sum(1, keepdim=True)


def _mean(x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.vecdot(x, y).div_(x.shape[-1]).unsqueeze(-1)

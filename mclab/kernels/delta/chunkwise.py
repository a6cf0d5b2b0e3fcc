"""The delta rules in chunks (WY form): no token's own matrix is formed, and no loop runs over tokens.

One decay a token (`Scalar`): S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T writes beta_t e_t k_t^T
with the residual e_t = v_t - alpha_t S_{t-1} k_t. With c_tj = L_tj beta_j, L the products of decays over j < m <= t
(differences of running logarithms, masked, never a quotient) and A_t their product from the chunk's start on,
(I + tril(c * K K^T, -1)) E = V - A K S_0^T, y = A Q S_0^T + (c * Q K^T) E, S_C = A_C S_0 + E^T (c_C K).

Shapes: X folded batch (sequences, heads and, where segments restart, segments), M chunks, C tokens, J writes that a
chunk's tokens read, K key width, V value width; H = S^T [M, X, K, V] are the states carried into the chunks.

See docs/equations.md#erasing-in-chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.constants import once
from mclab.kernels.delta import wy
from mclab.kernels.delta.state_passing import Passed, pass_states
from mclab.kernels.fastweight.chunkwise import Layer, OneLayer
from mclab.kernels.fastweight.online import Slots
from mclab.kernels.fastweight.rates import Coefficients

#: Most tokens in a chunk where every channel has its own decay (wy.scale_channels).
CHANNELS_CHUNK = 16


@dataclass(frozen=True)
class DeltaLayer(Layer):
    """A layer whose tokens all read at once. `scale` [M, X, C, K], None is one, is put on what reads."""

    scale: Tensor | None

    def online(self, x: Tensor) -> Tensor:
        """As of a `Layer`."""
        states, factors = self.slots.values, self.slots.factors
        return read(
            x if self.scale is None else x * self.scale,
            self.inputs,
            self.updates,
            self.writes,
            None if states is None else states.squeeze(2),
            None if factors is None else factors.squeeze(-1),
        )


@dataclass(frozen=True)
class Scalar(OneLayer):
    """Keys [M, X, C, K] and values [M, X, C, V] written with one step size and one decay a token, `coefficients` of
    Rates(beta, log alpha). Padded tokens have keys, values and betas of 0 and decays of 1. `keep` are chunks whose
    final matrices are wanted, `start` S_0 [X, V, K], None is zero."""

    keys: Tensor
    values: Tensor
    coefficients: Coefficients
    keep: Sequence[int]
    start: Tensor | None = None

    def layers(self) -> list[Layer]:
        """As of a `Source`: one layer, whose inputs are the keys and whose updates are the residuals."""
        k, (writes, decay) = self.keys, self.coefficients[:2]
        heavy = k if decay is None else k * decay.unsqueeze(-1)
        solved = wy.solve((k @ k.mT) * writes, torch.cat((heavy, self.values), -1))
        reads, own = solved.split([k.shape[-1], self.values.shape[-1]], -1)
        ends = k * writes[:, :, -1].unsqueeze(-1)
        last = None if decay is None else decay[:, :, -1:]
        start = None if self.start is None else self.start.mT
        made = pass_states(own, reads, ends, last, start, self.keep)
        slots = _slots(made, decay, self.start)
        return [DeltaLayer(slots, k, made.updates, writes, None, _kept(made), None)]


@dataclass(frozen=True)
class Channels(OneLayer):
    """Values [M, X, C, V] written under `keys` k, and taken from by `reads` a and `erases` b, with logarithms of decays
    `logs` of every channel, all [M, X, C, K]. Padded tokens have zeros everywhere. `keep` and `start` as in Scalar."""

    logs: Tensor
    reads: Tensor
    erases: Tensor
    keys: Tensor
    values: Tensor
    keep: Sequence[int]
    start: Tensor | None = None

    def layers(self) -> list[Layer]:
        """As of a `Source`: one layer; its inputs are b' and k', its updates -s and v, its queries scaled by A."""
        C = self.keys.shape[2]
        a, inputs, ends, scale = wy.scale_channels(self.logs, self.reads, self.erases, self.keys)
        reads, own = wy.solve_channels(a, inputs, self.values)
        start = None if self.start is None else self.start.mT
        made = pass_states(own, reads, ends, scale[:, :, -1], start, self.keep)
        writes = _seen(C, a.dtype, a.device)
        return [DeltaLayer(_slots(made, None, self.start), inputs, made.updates, writes, None, _kept(made), scale)]


@once
def _seen(C: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[C, 2C]: one for what a token sees of either half."""
    return torch.ones(C, C, dtype=dtype, device=device).tril().repeat(1, 2)


def _slots(made: Passed, decay: Tensor | None, start: Tensor | None) -> Slots:
    states = None if made.states is None else made.states.unsqueeze(2)
    factors = None if decay is None or states is None else decay.unsqueeze(-1)
    return Slots(states, factors, True, int(start is not None))


def _kept(made: Passed) -> Tensor | None:
    return None if made.kept is None else made.kept.mT


def read(
    q: Tensor, inputs: Tensor, updates: Tensor, writes: Tensor, states: Tensor | None, factors: Tensor | None
) -> Tensor:
    """What tokens read, for all chunks at once: y_t = f_t H^T q_t + sum_j c_tj z_j (a_j . q_t), [M, X, C, V].

    From q [M, X, C, K], a [M, X, J, K], z [M, X, J, V], c [M, X, C, J] or, for all chunks alike and
    without a gradient, [C, J], zero where a token does not see a write. None of H is zero, of f [M, X, C] one."""
    y: Tensor = _Read.apply(q, inputs, updates, writes, states, factors)  # type: ignore[no-untyped-call]
    return y


class _Read(torch.autograd.Function):
    """With g = dy, P = q a^T, Q = P * c: dQ = g z^T, dc = dQ * P, dq = (dQ * c) a + (f g) H^T, da = (dQ * c)^T q,
    dz = Q^T g, dH = q^T (f g), df = g . q H."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        inputs: Tensor,
        updates: Tensor,
        writes: Tensor,
        states: Tensor | None,
        factors: Tensor | None,
    ) -> Tensor:
        scores, through = q @ inputs.mT, None
        weighted = scores * writes
        y = weighted @ updates
        if states is not None:
            through = q @ states
            y = y.add_(through) if factors is None else y.addcmul_(through, factors.unsqueeze(-1))
        scored = scores if ctx.needs_input_grad[3] else None
        ctx.save_for_backward(
            q, inputs, updates, writes, states, factors, scored, weighted, None if factors is None else through
        )
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, inputs, updates, writes, states, factors, scores, weighted, through = ctx.saved_tensors
        grad = grads[0]
        grad_scores = grad @ updates.mT
        grad_writes = None if scores is None else scores * grad_scores
        grad_scores *= writes
        grad_q, grad_inputs, grad_updates = grad_scores @ inputs, grad_scores.mT @ q, weighted.mT @ grad
        grad_states = grad_factors = None
        if states is not None:
            if factors is not None:
                grad_factors = torch.linalg.vecdot(grad, through)
                grad = grad * factors.unsqueeze(-1)
            grad_q.flatten(0, 1).baddbmm_(grad.flatten(0, 1), states.flatten(0, 1).mT)
            grad_states = q.mT @ grad
        return grad_q, grad_inputs, grad_updates, grad_writes, grad_states, grad_factors

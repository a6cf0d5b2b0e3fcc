"""The delta rules in chunks (WY form): no token's own matrix is formed, and no loop runs over tokens.

One decay per token (`Scalar`): S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T writes beta_t e_t k_t^T
with the residual e_t = v_t - alpha_t S_{t-1} k_t. Let c_tj = L_tj beta_j, where L_tj is the product of decays over
j < m <= t (from differences of running logarithms, masked, never from a quotient), and let A_t be the product of decays
from the chunk's start on. Then (I + tril(c * K K^T, -1)) E = V - A K S_0^T, y = A Q S_0^T + (c * Q K^T) E, and
S_C = A_C S_0 + E^T (c_C K).

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

#: The most tokens in a chunk if every channel has its own decay (wy.scale_channels).
CHANNELS_CHUNK = 16


@dataclass(frozen=True)
class DeltaLayer(Layer):
    """A layer that all tokens read at once. Their vectors are multiplied by `scale` [M, X, C, K]; None means 1."""

    scale: Tensor | None

    def online(self, x: Tensor) -> Tensor:
        """See `Layer.online`."""
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
    """A sequence of keys [M, X, C, K] and values [M, X, C, V], written with one step size and one decay per token.

    `coefficients` are those of Rates(beta, log alpha). Padded tokens have keys, values and betas of 0 and decays of 1.
    `keep` lists the chunks whose final matrices are wanted. `start` is S_0 [X, V, K]; None means zero.
    """

    keys: Tensor
    values: Tensor
    coefficients: Coefficients
    keep: Sequence[int]
    start: Tensor | None = None

    def layers(self) -> list[Layer]:
        """See `Source.layers`. There is one layer, whose inputs are the keys and whose updates are the residuals."""
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
    """A sequence written with one decay per channel: S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T.

    `logs` log w, `reads` a, `erases` b and `keys` k are [M, X, C, K], `values` v [M, X, C, V]. Padded tokens have zeros
    everywhere. `keep` and `start` are as in `Scalar`.
    """

    logs: Tensor
    reads: Tensor
    erases: Tensor
    keys: Tensor
    values: Tensor
    keep: Sequence[int]
    start: Tensor | None = None

    def layers(self) -> list[Layer]:
        """See `Source.layers`. There is one layer with inputs b' and k', updates -s and v, and queries scaled by A."""
        C = self.keys.shape[2]
        a, inputs, ends, scale = wy.scale_channels(self.logs, self.reads, self.erases, self.keys)
        reads, own = wy.solve_channels(a, inputs, self.values)
        start = None if self.start is None else self.start.mT
        made = pass_states(own, reads, ends, scale[:, :, -1], start, self.keep)
        writes = _seen(C, a.dtype, a.device)
        return [DeltaLayer(_slots(made, None, self.start), inputs, made.updates, writes, None, _kept(made), scale)]


@once
def _seen(C: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [C, 2C], both halves of which are 1 where the token of the row sees the write of the column, else 0."""
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
    """Return the reads of the tokens of all chunks, y_t = f_t H^T q_t + sum_j c_tj z_j (a_j . q_t), [M, X, C, V].

    `q` is [M, X, C, K], `inputs` a [M, X, J, K], `updates` z [M, X, J, V]. `writes` c is [M, X, C, J], or [C, J] if it
    is the same for all chunks and needs no gradient; it is zero where a token does not see a write. `states` H is [M,
    X, K, V], where None means 0; `factors` f is [M, X, C], where None means 1.
    """
    y: Tensor = _Read.apply(q, inputs, updates, writes, states, factors)  # type: ignore[no-untyped-call]
    return y


class _Read(torch.autograd.Function):
    """Backward, with g = dy, P = q a^T, Q = P * c: dQ = g z^T, dc = dQ * P, dq = (dQ * c) a + (f g) H^T,
    da = (dQ * c)^T q, dz = Q^T g, dH = q^T (f g), df = g . q H."""

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

"""What tokens read of a written sequence, for all chunks at once: y_t = f_t H^T q_t + sum_j c_tj z_j (a_j . q_t).

Shapes: M chunks, X folded batch, C tokens, J writes, K key width, V value width; H [M, X, K, V] are the states carried
into the chunks.
"""

from typing import Any

import torch
from torch import Tensor


def read(
    q: Tensor, inputs: Tensor, updates: Tensor, writes: Tensor, states: Tensor | None, factors: Tensor | None
) -> Tensor:
    """[M, X, C, V] from q [M, X, C, K], a [M, X, J, K], z [M, X, J, V], c [M, X, C, J] or, for all chunks alike and
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

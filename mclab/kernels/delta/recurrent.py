"""The generalised delta rule token by token: the definition that the chunk forms are tested against.

Shapes: X folded batch, T time, K key width, V value width.
"""

import torch
from torch import Tensor


def step(state_XVK: Tensor, decay: Tensor, a_XK: Tensor, b_XK: Tensor, k_XK: Tensor, v_XV: Tensor) -> Tensor:
    """Return S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T.

    `decay` w is [X, K], or [X, 1] if all channels have the same decay.
    """
    held_XV = (state_XVK * a_XK.unsqueeze(-2)).sum(-1)
    kept_XVK = state_XVK * decay.unsqueeze(-2) - held_XV.unsqueeze(-1) * b_XK.unsqueeze(-2)
    return kept_XVK + v_XV.unsqueeze(-1) * k_XK.unsqueeze(-2)


def read(
    q_XTK: Tensor, decay: Tensor, a_XTK: Tensor, b_XTK: Tensor, k_XTK: Tensor, v_XTV: Tensor, start_XVK: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs y_t = S_t q_t [X, T, V] and all states S_t [X, T, V, K]; `decay` is [X, T, K] or [X, T, 1]."""
    state, outputs, states = start_XVK, [], []
    for t in range(q_XTK.shape[1]):
        state = step(state, decay[:, t], a_XTK[:, t], b_XTK[:, t], k_XTK[:, t], v_XTV[:, t])
        outputs.append((state * q_XTK[:, t].unsqueeze(-2)).sum(-1))
        states.append(state)
    return torch.stack(outputs, 1), torch.stack(states, 1)

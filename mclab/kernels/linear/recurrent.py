"""The linear memory token by token: the definition that the chunkwise forms are tested against.

Shapes: G = R*B*H folded, T time, K key width, V value width, S segment length, N segments.
"""

import torch
from torch import Tensor


def segment_states(k_GTK: Tensor, v_GTV: Tensor, segment: int) -> Tensor:
    """Return the sum of v_t k_t^T over the tokens of each segment, [G, N, V, K]."""
    G, T, K = k_GTK.shape
    states = []
    for start in range(0, T, segment):
        state = k_GTK.new_zeros(G, v_GTV.shape[-1], K)
        for t in range(start, min(start + segment, T)):
            state = state + v_GTV[:, t, :, None] * k_GTK[:, t, None, :]
        states.append(state)
    return torch.stack(states, dim=1)


def weighted_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights_GTN: Tensor, segment: int) -> Tensor:
    """Return y_t = sum_n w_t^(n) M^(n) q_t over the segments up to t's, of which the last has only the tokens up to t.

    The result is [G, T, V].
    """
    G, T, K = k_GTK.shape
    states: list[Tensor] = []
    outputs = []
    for t in range(T):
        if t % segment == 0:
            states.append(k_GTK.new_zeros(G, v_GTV.shape[-1], K))
        states[-1] = states[-1] + v_GTV[:, t, :, None] * k_GTK[:, t, None, :]
        reads = [weights_GTN[:, t, n, None] * (state @ q_GTK[:, t, :, None])[..., 0] for n, state in enumerate(states)]
        outputs.append(torch.stack(reads).sum(0))
    return torch.stack(outputs, dim=1)

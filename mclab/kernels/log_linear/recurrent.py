"""Log-linear attention token by token: the definition that the chunk form is tested against.

Shapes: X folded batch, T time, K key width, V value width, L levels.
"""

import torch
from torch import Tensor

from mclab.kernels.delta.recurrent import step


def read(
    q_XTK: Tensor, decay_XT: Tensor, a_XTK: Tensor, b_XTK: Tensor, k_XTK: Tensor, v_XTV: Tensor, weights_XTL: Tensor
) -> Tensor:
    """Return y_t [X, T, V] for S_t = S_{t-1} (alpha_t I - a_t b_t^T) + v_t k_t^T, with one state for each level.

    Before token t, the last token and all buckets below the lowest set digit of t are merged into the bucket of that
    digit.
    """
    zero_XVK = v_XTV.new_zeros(len(q_XTK), v_XTV.shape[-1], q_XTK.shape[-1])
    held: dict[int, Tensor] = {}
    outputs = []
    for t in range(q_XTK.shape[1]):
        if t:
            lowest = (t & -t).bit_length()
            merged = [held.pop(level) for level in range(lowest) if level in held]
            held[lowest] = torch.stack(merged).sum(0)
        decay, a, b = decay_XT[:, t, None], a_XTK[:, t], b_XTK[:, t]
        held = {level: step(state, decay, a, b, 0 * k_XTK[:, t], v_XTV[:, t]) for level, state in held.items()}
        held[0] = step(zero_XVK, decay, a, b, k_XTK[:, t], v_XTV[:, t])
        last = weights_XTL.shape[-1] - 1
        reads = [
            weights_XTL[:, t, min(level, last), None] * (state * q_XTK[:, t, None]).sum(-1)
            for level, state in held.items()
        ]
        outputs.append(torch.stack(reads).sum(0))
    return torch.stack(outputs, 1)

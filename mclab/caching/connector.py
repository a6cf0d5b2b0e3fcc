"""The vector u that a token compares with a segment's pool: a separate projection of x, or the query.

See docs/equations.md#connector.
"""

from torch import Tensor, nn

from mclab.replicas.layers import Linear


class Own(nn.Module):
    """u_t = x_t W_u (MC eq. 10): [R, B, T, D] to [R, B, T, D]."""

    def __init__(self, replicas: int, width: int) -> None:
        super().__init__()
        self.project = Linear(replicas, width, width)

    def forward(self, x_RBTD: Tensor, q_RBTD: Tensor) -> Tensor:
        projected: Tensor = self.project(x_RBTD)
        return projected


class Shared(nn.Module):
    """u_t = q_t, before any rotary embedding (the alternative of MC section 3.1)."""

    def __init__(self, replicas: int, width: int) -> None:
        super().__init__()

    def forward(self, x_RBTD: Tensor, q_RBTD: Tensor) -> Tensor:
        return q_RBTD


#: Connectors by their name under `model.mixer.connector`.
CONNECTORS: dict[str, type[Own | Shared]] = {"own": Own, "shared": Shared}

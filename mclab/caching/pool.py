"""How a segment's keys become the one vector that the context score compares with (EQUATIONS 1, gate)."""

from collections.abc import Callable

import torch
from torch import Tensor


def mean(k_GNSK: Tensor) -> tuple[Tensor, Tensor]:
    """Mean key of each segment [G, N, K], and of each segment up to and including every token [G, N, S, K]."""
    running = _running(k_GNSK, torch.arange(1, k_GNSK.shape[2] + 1, device=k_GNSK.device))
    return running[:, :, -1], running


def total(k_GNSK: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of keys (the paper's eq. 16), shapes as `mean`."""
    running = _running(k_GNSK, torch.ones(k_GNSK.shape[2], device=k_GNSK.device))
    return running[:, :, -1], running


def _running(k_GNSK: Tensor, divisor_S: Tensor) -> Tensor:
    # A product with a small triangular matrix: cumsum along a middle axis is several times slower.
    S = k_GNSK.shape[2]
    lower = torch.ones(S, S, dtype=k_GNSK.dtype, device=k_GNSK.device).tril() / divisor_S[:, None]
    return torch.matmul(lower.to(k_GNSK.dtype), k_GNSK)


POOLS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {"mean": mean, "sum": total}

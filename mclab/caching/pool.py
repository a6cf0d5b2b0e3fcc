"""How a segment's keys, or inputs, become the one vector that the context score compares with (docs/equations.md#pool).

A pool is their sum times a factor that depends on their number alone, so a score is a product with the sum, times
that factor. Shapes: T time padded to full segments, N segments.
"""

from collections.abc import Callable

from torch import Tensor


def mean(counts: Tensor) -> Tensor:
    """Mean."""
    return 1 / counts


def total(counts: Tensor) -> Tensor:
    """Sum (the paper's eq. 16)."""
    return counts.new_ones(counts.shape)


#: By the name under `model.mixer.pool`: from the number of pooled tokens to the factor on their sum.
POOLS: dict[str, Callable[[Tensor], Tensor]] = {"mean": mean, "sum": total}

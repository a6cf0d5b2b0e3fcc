"""Pool the keys or inputs of a segment into one vector for its context score (docs/equations.md#pool).

A pool is the sum of the vectors times a factor that depends only on their number. So a score is the product of u with
the sum, times this factor. Shapes: T time padded to full segments, N segments.
"""

from collections.abc import Callable

from torch import Tensor


def mean(counts: Tensor) -> Tensor:
    """Return the factor of the mean: 1 / count."""
    return 1 / counts


def total(counts: Tensor) -> Tensor:
    """Return the factor of the sum (the paper's eq. 16): 1."""
    return counts.new_ones(counts.shape)


#: Pools by their name under `model.mixer.pool`, as functions from the number of pooled tokens to the factor.
POOLS: dict[str, Callable[[Tensor], Tensor]] = {"mean": mean, "sum": total}

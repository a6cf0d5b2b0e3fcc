"""A `Gate` has the inputs of a gate whose weights are computed and used in one kernel (flash_grm.py).

Shapes as in chunkwise.py.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Gate:
    """A gate whose weights are the softmax of scores over the segments that a token sees.

    If `u` is given, the score is `scale` times <u_t, sum (or `mean`) of the segment's `pooled`>, both [G, T, K]; in t's
    segment, only the tokens up to t count. If `logits` [G, T, N] are given instead, they are the scores. If neither is
    given, every weight is 1.
    """

    u: Tensor | None = None
    pooled: Tensor | None = None
    scale: float = 1.0
    mean: bool = False
    logits: Tensor | None = None

    @property
    def kind(self) -> int:
        """Return the kind of the gate: NONE, CONTEXT or INPUT of triton/tiles.py."""
        return 1 if self.u is not None else 2 if self.logits is not None else 0

    def tensors(self) -> list[Tensor]:
        """Return those of `u`, `pooled` and `logits` that the gate has."""
        return [x for x in (self.u, self.pooled, self.logits) if x is not None]

    def given(self, tensors: list[Tensor]) -> "Gate":
        """Return the same gate with other `tensors`, in the order in which `tensors()` returns them."""
        each = iter(tensors)
        u, pooled, logits = (None if x is None else next(each) for x in (self.u, self.pooled, self.logits))
        return Gate(u, pooled, self.scale, self.mean, logits)

"""The inputs of a gate whose weights a kernel makes and uses in one (flash_grm.py). Shapes as in chunkwise.py."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Gate:
    """The softmax over the segments that a token sees of `scale` times <u_t, sum or `mean` of a segment's `pooled`>,
    both [G, T, K], where there is u; else of `logits` [G, T, N]; else every weight is one.

    In t's own segment the pool is of the tokens up to t.
    """

    u: Tensor | None = None
    pooled: Tensor | None = None
    scale: float = 1.0
    mean: bool = False
    logits: Tensor | None = None

    @property
    def kind(self) -> int:
        """NONE, CONTEXT or INPUT of triton/tiles.py."""
        return 1 if self.u is not None else 2 if self.logits is not None else 0

    def tensors(self) -> list[Tensor]:
        """Those that it has."""
        return [x for x in (self.u, self.pooled, self.logits) if x is not None]

    def given(self, tensors: list[Tensor]) -> "Gate":
        """The same with others in their place."""
        each = iter(tensors)
        u, pooled, logits = (None if x is None else next(each) for x in (self.u, self.pooled, self.logits))
        return Gate(u, pooled, self.scale, self.mean, logits)

"""Deep linear attention: M_t = M_{t-1} - eta_t grad L, L = -<M(k), v> (MC, arXiv 2602.24281, eq. 11; Miras).

The paper prints eq. 11 with the other sign, which climbs the loss; this code descends it.

See docs/equations.md#dla.
"""

import torch
from torch import Tensor

from mclab.kernels.fastweight.rates import Rates
from mclab.memories.base_gradient import GradientMemory


class DlaMemory(GradientMemory):
    """The memory of deep linear attention. Its rate is the step size; the steps of a chunk sum to at most `max_lr`."""

    @staticmethod
    def starts(heads: int) -> tuple[tuple[float, ...], ...]:
        return ((0.0,),) * heads

    def rates(self, logits: tuple[Tensor, ...]) -> Rates:
        return Rates(torch.sigmoid(logits[0]) * (self.max_lr / self.chunk))

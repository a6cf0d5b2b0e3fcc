"""Titans: S_t = beta_t S_{t-1} - eta_t grad L, M_t = alpha_t M_{t-1} + S_t, L = |M(k) - v|^2 (arXiv 2501.00663).

The Memory Caching paper prints M_t = alpha_t M_{t-1} - S_t, which climbs the loss; this code descends it, like Titans.

See docs/equations.md#titans.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight.rates import Rates
from mclab.memories.base_gradient import GradientMemory

#: The initial bias of the decay's logit, and the range over which the heads' momentum logits start.
ALPHA, BETA = 5.0, (0.0, 2.0)


class TitansMemory(GradientMemory):
    """The memory of Titans. Its rates are step size, decay and momentum.

    The steps of a chunk, momentum included, sum to at most `max_lr`: eta = sigmoid(.) max_lr (1 - beta) / C. (A bound
    on eta alone was measured and is not enough.)
    """

    @staticmethod
    def starts(heads: int) -> tuple[tuple[float, ...], ...]:
        low, high = BETA
        step = (high - low) / (heads + 1)
        return tuple((0.0, ALPHA, low + step * (head + 1)) for head in range(heads))

    def rates(self, logits: tuple[Tensor, ...]) -> Rates:
        eta, alpha, beta = logits
        bound = torch.sigmoid(-beta) * (self.max_lr / self.chunk)
        return Rates(torch.sigmoid(eta) * bound, F.logsigmoid(alpha), F.logsigmoid(beta))

"""Mamba-2: M_t = exp(Delta_t A) M_{t-1} + Delta_t v_t k_t^T, A < 0 of each head (arXiv 2405.21060, SSD).

Delta is the softplus of a projection of the layer's input, one for each head. D_h v_t is added to the output without
passing through the memory. Only this recurrence of the Mamba-2 block is here: projections, convolution, norm and gate
are the same as for every memory. Shapes as in memories/base.py.

See docs/equations.md#mamba2.
"""

import math

from torch import Tensor
from torch.nn import functional as F

from mclab.config.model import MemoryMixer
from mclab.kernels.fastweight.rates import Coefficients, Rates, coefficients
from mclab.memories.base import State, Tokens
from mclab.memories.base_decay import DecayedMemory, stepped
from mclab.memories.chunks import Chunks
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Constant, Normal, Values, parameter

#: The range over which the Delta of the heads start, evenly on a logarithmic scale; the initial value of -A, which is
#: the slow end of Mamba-2's range.
DELTA, RATE = (0.001, 0.1), 1.0
#: The initial value of D. With Mamba-2's value of 1, D v would be far larger than the output of a memory of unit keys
#: and such small steps.
PASSED = 0.0


class Mamba2Memory(DecayedMemory):
    """The memory of Mamba-2. The step size decides both how much is written and how much is forgotten."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__(replicas, width, heads, mixer)
        self.project = parameter(replicas, width, heads, init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(replicas, heads, 1, init=Values(_biases(heads)), decays=False)
        self.A_log = parameter(replicas, heads, 1, init=Constant(math.log(RATE)), decays=False)
        self.D = parameter(replicas, heads, 1, init=Constant(PASSED), decays=False)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        """Return keys and values with two rates: Delta, and Delta A, the logarithm of the decay."""
        logits_RBHT = (linear(x_RBTD, self.project) + self.bias.mT.unsqueeze(1)).transpose(2, 3)
        delta_RBHT = F.softplus(logits_RBHT)
        log_alpha_RBHT = -delta_RBHT * self.A_log.exp().unsqueeze(1)
        return Tokens(k_GTK, v_GTV, (delta_RBHT.flatten(0, 2), log_alpha_RBHT.flatten(0, 2)))

    def skip(self, tokens: Tokens) -> Tensor:
        """Return D_h v_t, [G, T, V]."""
        R, H, _ = self.D.shape
        passed: Tensor = self.D[:, None, :, :, None] * tokens.v.unflatten(0, (R, -1, H))
        return passed.flatten(0, 2)

    def coefficients(self, tokens: Tokens, chunks: Chunks) -> Coefficients:
        delta, log_alpha = tokens.rates
        return coefficients(Rates(chunks.cut(delta), chunks.cut(log_alpha)))

    def step(self, state: State, token: Tokens) -> State:
        delta, log_alpha = token.rates
        return stepped(state, log_alpha.exp(), [(delta, token.v, token.k)], token)


def _biases(heads: int) -> tuple[tuple[float], ...]:
    """Return biases whose softplus spreads the heads over DELTA, each in the middle of its part: 0.01 with one head."""
    low, high = (math.log(end) for end in DELTA)
    steps = (math.exp(low + (high - low) * (head + 0.5) / heads) for head in range(heads))
    return tuple((step + math.log(-math.expm1(-step)),) for step in steps)

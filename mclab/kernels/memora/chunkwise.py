"""A sequence written into Memora in chunks. Every token's own weights are formed, a few tokens' at a time.

Shapes as in kernels/fastweight/chunkwise.py, whose `Source` this is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from mclab.kernels.fastweight.chunkwise import Layer, OneLayer
from mclab.kernels.fastweight.online import Slots
from mclab.kernels.fastweight.rates import Coefficients
from mclab.kernels.fastweight.steps import at_ends
from mclab.kernels.memora import chunkwise


class FormedLayer(Layer):
    """A layer that is written in logits, which slots, inputs and updates make as they make another's weights; `kept`
    are weights."""

    def online(self, x: Tensor) -> Tensor:
        """As of a `Layer`."""
        starts, decay = self.slots.values, self.slots.factors
        assert decay is not None
        starts = None if starts is None else starts.squeeze(2)
        return chunkwise.read(x, starts, decay.squeeze(-1), self.writes, self.inputs, self.updates)


@dataclass(frozen=True)
class Retention(OneLayer):
    """Descent of |W k - v|^2 in logits, from zero; every chunk's gradients are taken at the weights it began with.

    `keys` [M, X, C, K], `values` [M, X, C, V]; `ends[m]` is the place of the last token of chunk m, `keep` are chunks
    whose final weights are wanted. The coefficients have a decay and no momentum.
    """

    keys: Tensor
    values: Tensor
    coefficients: Coefficients
    ends: Sequence[int]
    keep: Sequence[int]

    def layers(self) -> list[Layer]:
        """As of a `Source`: one layer."""
        decay, writes = self.coefficients.decay, self.coefficients.writes
        assert decay is not None
        ends, last = at_ends(writes, self.ends), at_ends(decay, self.ends)
        starts, updates, kept = chunkwise.write(self.keys, self.values, ends, last, self.keep)
        carried = starts.unsqueeze(2) if len(self.ends) > 1 else None
        slots = Slots(carried, decay.unsqueeze(-1), widens=False, live=0)
        return [FormedLayer(slots, self.keys, updates, writes, None, kept)]

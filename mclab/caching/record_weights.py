"""Record the weights gamma with which the caching layers read, during the forward pass itself.

Nothing is computed twice: the recorded tensors are those that were passed to the memory. A model that is not recorded
pays one comparison for each layer. Shapes: G = R*B*H folded, T time, N columns.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from mclab.caching.gate_output import GateOutput
from mclab.caching.layer import CachingLayer
from mclab.memories.base import Written
from mclab.memories.sparse_read import spread


class Recorded(NamedTuple):
    """The weights of one layer in one forward pass."""

    layer: int
    """The index of the layer among the model's caching layers, counted from the input."""
    heads: int
    """H, the number of heads. The heads of one sequence are adjacent in G."""
    weights: Tensor
    """[G, T, N], detached. T is padded to full segments. Columns are those of caching/segment.py: constant segments in
    order, or all buckets and then the online memory. The weight is zero if nothing was read.
    """


@contextmanager
def recording(model: nn.Module) -> Iterator[list[Recorded]]:
    """Within the block, every forward pass of `model` appends one `Recorded` for each caching layer, in their order.

    With a softmax every row sums to 1, with other activations it does not; without a gate every memory that is read has
    weight 1. With `soup` these are the weights of the mixed matrices. With `ssc` they are zero outside the selection.
    With `none` there is one column of ones or, with a cache after training, the weights of its average. Recording does
    not change outputs or gradients. Raises `ValueError` for a model that is recorded already.
    """
    layers = [module for module in model.modules() if isinstance(module, CachingLayer)]
    if any(layer.recorder is not None for layer in layers):
        raise ValueError("the model is recorded already")
    seen: list[Recorded] = []
    try:
        for place, layer in enumerate(layers):
            layer.recorder = _recorder(place, layer.heads, seen)
        yield seen
    finally:
        for layer in layers:
            layer.recorder = None


def _recorder(place: int, heads: int, seen: list[Recorded]) -> Callable[[Written, GateOutput], Written]:
    def record(weights: Tensor) -> None:
        seen.append(Recorded(place, heads, weights))

    return lambda written, gated: _RecordedSequence(written, gated, record)


@dataclass(frozen=True)
class _RecordedSequence:
    """A written sequence that records the weights of every read."""

    written: Written
    gated: GateOutput
    record: Callable[[Tensor], None]

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        self._record_all(q_GTK, weights_GTN)
        return self.written.read(q_GTK, weights_GTN)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        self.record(spread(weights_GTJ.detach(), columns_GTJ, self.gated.visible_TN.shape[1]))
        return self.written.read_chosen(q_GTK, weights_GTJ, columns_GTJ)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        self._record_all(q_GTK, weights_GTN)
        return self.written.read_mixed(q_GTK, weights_GTN)

    def _record_all(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> None:
        ones_TN = self.gated.visible_TN.to(q_GTK.dtype)
        self.record(ones_TN.expand(len(q_GTK), -1, -1) if weights_GTN is None else weights_GTN.detach())

"""Recording the weights gamma that the caching layers read with, in the forward pass itself.

Nothing is computed twice: what is recorded is what the memory was handed. A model that is not recorded pays one
comparison a layer. Shapes: G = R*B*H folded, T time, N columns.
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
    """Its place among the model's caching layers, from 0 at the bottom."""
    heads: int
    """H; the heads of one sequence follow each other in G."""
    weights: Tensor
    """[G, T, N], detached; padded to full segments, and with the columns, of caching/segment.py: constant segments in
    their order, or every bucket and behind them the online memory. Zero where nothing was read."""


@contextmanager
def recording(model: nn.Module) -> Iterator[list[Recorded]]:
    """Within the block every forward pass of `model` adds one `Recorded` for each caching layer, in their order.

    A softmax gives rows that sum to 1, other activations do not; without a gate a memory that is read weighs 1. For
    `soup` these are the weights of the mixed matrices, for `ssc` they are zero outside the selection, and `none` has
    one column of ones, or with a cache after training the weights of its average.
    Outputs and gradients are the same as without. Raises `ValueError` for a model that is recorded already.
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
    """A written sequence that records the weights it is read with."""

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

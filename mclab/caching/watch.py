"""Looking at the weights gamma that the caching layers read with, from the forward pass itself.

Nothing is computed twice: what is recorded is what the memory was handed. A model that nobody watches pays one
comparison a layer. Shapes: G = R*B*H folded, T time, N columns.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from mclab.caching.layer import CachingLayer
from mclab.caching.view import View
from mclab.memories.base import Written
from mclab.memories.chosen import spread


class Watched(NamedTuple):
    """The weights of one layer in one forward pass."""

    layer: int
    """Its place among the model's caching layers, from 0 at the bottom."""
    heads: int
    """H; the weights of one sequence's heads stand side by side in G."""
    weights: Tensor
    """[G, T, N], detached; padded to full segments, and with the columns, of caching/segment.py: constant segments in
    their order, or every bucket and behind them the online memory. Zero where nothing was read."""


@contextmanager
def watching(model: nn.Module) -> Iterator[list[Watched]]:
    """Within the block every forward pass of `model` adds one `Watched` for each caching layer, in their order.

    A softmax gives rows that sum to 1, other activations do not; without a gate a memory that is read weighs 1. For
    `soup` these are the weights of the mixed matrices, for `ssc` they are zero outside the selection, and `none` has
    one column of ones, or with a cache after training the weights of its average.
    Outputs and gradients are what they are unwatched. Raises `ValueError` for a model that is watched already.
    """
    layers = [module for module in model.modules() if isinstance(module, CachingLayer)]
    if any(layer.watch is not None for layer in layers):
        raise ValueError("the model is watched already")
    seen: list[Watched] = []
    try:
        for place, layer in enumerate(layers):
            layer.watch = _watch(place, layer.heads, seen)
        yield seen
    finally:
        for layer in layers:
            layer.watch = None


def _watch(place: int, heads: int, seen: list[Watched]) -> Callable[[Written, View], Written]:
    return lambda written, view: _Seen(written, view, lambda weights: seen.append(Watched(place, heads, weights)))


@dataclass(frozen=True)
class _Seen:
    """A written memory that tells which weights it is read with."""

    written: Written
    view: View
    tell: Callable[[Tensor], None]

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        self._look(q_GTK, weights_GTN)
        return self.written.read(q_GTK, weights_GTN)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        self.tell(spread(weights_GTJ.detach(), columns_GTJ, self.view.visible_TN.shape[1]))
        return self.written.read_chosen(q_GTK, weights_GTJ, columns_GTJ)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        self._look(q_GTK, weights_GTN)
        return self.written.read_mixed(q_GTK, weights_GTN)

    def _look(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> None:
        ones_TN = self.view.visible_TN.to(q_GTK.dtype)
        self.tell(ones_TN.expand(len(q_GTK), -1, -1) if weights_GTN is None else weights_GTN.detach())

"""Set, for each training step, the layers that choose which memories they read (docs/equations.md#route).

The random numbers depend only on the seed of the replica, the number of the sequence in its step, the step, the layer,
the head and the token. Shapes: R replicas, B batch, H heads, T time padded to full segments, G = R*B*H folded.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from mclab.caching.gate_output import RouteStep
from mclab.caching.layer import CachingLayer
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.tasks.stream import fork, sample_keys, words

#: With `route: annealed` a layer reads all memories in this first share of the steps.
EARLY = 0.3


class Routing:
    """The random draws for a pack's replicas. The number of the step is kept on the device; nothing is read back."""

    def __init__(self, model: LM, run: RunConfig, seeds: Sequence[int], device: torch.device) -> None:
        found = [module for module in model.modules() if isinstance(module, CachingLayer)]
        self.layers = [layer for layer in found if layer.mixer.aggregate == "ssc"]
        self.last_early = int(EARLY * run.train.steps)
        self.keys_B = sample_keys("route", seeds, 0, run.train.batch, device).flatten()
        self.number = torch.zeros(1, dtype=torch.int64, device=device)

    def phase(self, step: int) -> bool:
        """Return whether some layer still reads all memories at the 1-based `step`, which is another computation."""
        return step <= self.last_early and any(layer.mixer.route == "annealed" for layer in self.layers)

    @contextmanager
    def at(self, step: int, length: int) -> Iterator[None]:
        """Within the block, set the layers for training at the 1-based `step` on sequences of `length` tokens."""
        self.number.fill_(step)
        with self.within(self.phase(step), length):
            yield

    @contextmanager
    def within(self, early: bool, length: int) -> Iterator[None]:
        """Within the block, set the layers for the step whose number is on the device; `early` is its `phase`."""
        try:
            for place, layer in enumerate(self.layers):
                reads_all = early and layer.mixer.route == "annealed"
                drawn = layer.mixer.route in ("explore", "annealed") and not reads_all
                layer.route_step = RouteStep(reads_all, self._draws(layer, place, length) if drawn else None)
            yield
        finally:
            for layer in self.layers:
                layer.route_step = None

    def _draws(self, layer: CachingLayer, place: int, length: int) -> Tensor:
        """Return [G, T] int32, uniform below 2^31. Each layer and each step has a separate random stream."""
        padded = length + -length % layer.mixer.block
        streams_B = fork(self.keys_B, self.number * len(self.layers) + place).squeeze(-1)
        return words(streams_B, layer.heads * padded).view(-1, padded)

"""The sequences that a pack trains on: step n of a run sees samples n*batch to (n+1)*batch - 1 of its train stream."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mclab.config.run import RunConfig
from mclab.tasks import TASKS, Batch

#: Sequences made in one call for all replicas together (below this, call overhead dominates), and tokens at most.
BLOCK, BLOCK_TOKENS = 1024, 2**19


class TrainData:
    """Batches of all replicas side by side, and the memory of what was shown."""

    def __init__(self, run: RunConfig, seeds: Sequence[int], device: torch.device) -> None:
        self.run, self.seeds, self.device = run, seeds, device
        self._seen: list[Tensor] = []

    def batches(self, done: int = 0) -> Iterator[Batch]:
        """The batches of the steps after the first `done`, one a step, modulo `train.examples`."""
        train = self.run.train
        rows = min(BLOCK, BLOCK_TOKENS // self.run.task.length)
        per_call = max(1, rows // (train.batch * len(self.seeds)))
        for first in range(0, train.steps, per_call):
            steps = min(per_call, train.steps - first)
            block = self._block(first, steps)
            self._seen.append(block.fingerprints)
            for step in range(steps):
                if first + step >= done:
                    at = step * train.batch
                    yield Batch(*(field[:, at : at + train.batch] for field in block))

    @property
    def seen(self) -> Tensor:
        """[R, n]: the fingerprints of the sequences given out so far, those of earlier steps included."""
        return torch.cat(self._seen, dim=1)

    def _block(self, first: int, steps: int) -> Batch:
        task, train = TASKS[self.run.task.name], self.run.train
        ranges = _ranges(first * train.batch, steps * train.batch, train.examples)
        parts = [task.batch(self.run.task, self.seeds, "train", a, n, self.device) for a, n in ranges]
        return Batch(*(torch.cat(field, dim=1) for field in zip(*parts, strict=True)))


def _ranges(start: int, count: int, examples: int | None) -> list[tuple[int, int]]:
    """Contiguous pieces of samples start .. start + count - 1, taken modulo `examples`."""
    if examples is None:
        return [(start, count)]
    pieces = []
    while count:
        at = start % examples
        length = min(count, examples - at)
        pieces.append((at, length))
        start, count = start + length, count - length
    return pieces

"""Make the sequences that a pack trains on: step n of a run sees samples n*batch to (n+1)*batch - 1 of its train
stream.

With a mix (`train.task`) each step trains on one part of the mix, the same part for every seed. Each part has samples
of its own.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mclab.config.run import RunConfig
from mclab.config.task import TaskConfig
from mclab.config.variants import turns
from mclab.tasks import TASKS, Batch

#: The number of sequences made in one call for all replicas together (with fewer, call overhead dominates), and the
#: most tokens of one call.
BLOCK, BLOCK_TOKENS = 1024, 2**19
#: The distance between the first samples of two parts of a mix. Tasks that differ only in one config key may draw equal
#: sequences from equal sample numbers.
APART = 2**40


class TrainData:
    """The training batches of all replicas, and a record of the sequences that were used.

    `tokens` is the number of tokens of one replica in the batches so far, including the first `done` that `batches`
    skips.
    """

    def __init__(self, run: RunConfig, seeds: Sequence[int], device: torch.device) -> None:
        self.run, self.seeds, self.device = run, seeds, device
        self.tokens = 0
        self._seen: list[Tensor] = []

    def batches(self, done: int = 0) -> Iterator[Batch]:
        """Yield the batch of every step after the first `done`.

        If `train.examples` is set, samples repeat after that many.
        """
        self.tokens, self._seen = 0, []
        mix, train = self.run.mix, self.run.train
        weights = tuple(part.weight for part in mix)
        order = turns(weights, train.steps)
        examples = shares(train.examples, weights)
        streams = [
            self._stream(part.task, place * APART, order.count(place), examples[place])
            for place, part in enumerate(mix)
        ]
        for step, place in enumerate(order):
            batch = next(streams[place])
            self.tokens += train.batch * mix[place].task.length
            self._seen.append(batch.fingerprints)
            if step >= done:
                yield batch

    @property
    def seen(self) -> Tensor:
        """Return [R, n]: the fingerprints of the sequences so far, with those of the batches that `batches` skips."""
        return torch.cat(self._seen, dim=1)

    def _stream(self, task: TaskConfig, first: int, steps: int, examples: int | None) -> Iterator[Batch]:
        """Yield the batches of one part of the mix, making many in one call. `first` is the part's first sample."""
        size = self.run.train.batch
        per_call = max(1, min(BLOCK, BLOCK_TOKENS // task.length) // (size * len(self.seeds)))
        for done in range(0, steps, per_call):
            now = min(per_call, steps - done)
            block = self._block(task, first, _ranges(done * size, now * size, examples))
            for at in range(0, now * size, size):
                yield Batch(*(field[:, at : at + size] for field in block))

    def _block(self, task: TaskConfig, first: int, ranges: Sequence[tuple[int, int]]) -> Batch:
        make = TASKS[task.name].batch
        pieces = [make(task, self.seeds, "train", first + at, count, self.device) for at, count in ranges]
        return Batch(*(torch.cat(field, dim=1) for field in zip(*pieces, strict=True)))


def shares(examples: int | None, weights: Sequence[int]) -> list[int | None]:
    """Return how many of `examples` fixed training sequences each part of a mix gets; `None` for each without a limit.

    The numbers are in proportion to the weights, at least 1, and except for this minimum add up to `examples`.
    """
    if examples is None:
        return [None] * len(weights)
    ends = [examples * sum(weights[: place + 1]) // sum(weights) for place in range(len(weights))]
    return [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]


def _ranges(start: int, count: int, examples: int | None) -> list[tuple[int, int]]:
    """Return contiguous ranges (first, count) that cover samples start .. start + count - 1, modulo `examples`."""
    if examples is None:
        return [(start, count)]
    pieces = []
    while count:
        at = start % examples
        length = min(count, examples - at)
        pieces.append((at, length))
        start, count = start + length, count - length
    return pieces

"""Counting in training what followed what, and answering with the most frequent of it.

Letters in shapes: N sequences, Q scored positions, M contexts.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import TaskConfig
from mclab.tasks.base import NO_ANSWER, Batch


class TrainingSet(NamedTuple):
    """Training sequences of a task, with the answers that a test would score."""

    config: TaskConfig
    batch: Batch


class Table(NamedTuple):
    """[M] contexts in order, and what came most often in each."""

    contexts: Tensor
    outcomes: Tensor

    def of(self, contexts: Tensor) -> Tensor:
        """What to expect in each context; for one that was never seen, the next that was."""
        return self.outcomes[torch.searchsorted(self.contexts, contexts).clamp_(max=len(self.contexts) - 1)]


def counted(pairs: Iterable[tuple[Tensor, Tensor]]) -> Table:
    """The table of all (contexts, outcomes), flat and at least 0. Of outcomes equally often the smallest."""
    contexts, outcomes = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    size = int(outcomes.max()) + 1
    codes, often = torch.unique(contexts * size + outcomes, return_counts=True)
    order = often.argsort(descending=True, stable=True)
    order = order[(codes[order] // size).argsort(stable=True)]
    context, outcome = codes[order] // size, codes[order] % size
    first = torch.cat((torch.ones_like(context[:1], dtype=torch.bool), context[1:] != context[:-1]))
    return Table(context[first], outcome[first])


def bigram(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """The token that in training was wanted most often after the one that was read last."""
    table = counted(_bigrams(each.batch) for each in training)
    return table.of(test.tokens.gather(-1, test.positions))


def _bigrams(batch: Batch) -> tuple[Tensor, Tensor]:
    scored = batch.answers != NO_ANSWER
    return batch.tokens.gather(-1, batch.positions)[scored], batch.answers[scored]

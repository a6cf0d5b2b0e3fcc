"""Predict by counting: count in training which outcome followed which context, and predict the most frequent one.

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
    """A table from contexts to outcomes:

    `contexts` [M], ascending, and the most frequent outcome of each, `outcomes` [M].
    """

    contexts: Tensor
    outcomes: Tensor

    def of(self, contexts: Tensor) -> Tensor:
        """Return the most frequent outcome of each of `contexts`.

        A context that training did not have gets the outcome of the next larger context, or else of the largest.
        """
        return self.outcomes[torch.searchsorted(self.contexts, contexts).clamp_(max=len(self.contexts) - 1)]


def counted(pairs: Iterable[tuple[Tensor, Tensor]]) -> Table:
    """Return the table of all (contexts, outcomes) in `pairs`, which are flat tensors of numbers from 0 up.

    Among equally frequent outcomes the smallest is taken.
    """
    contexts, outcomes = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    size = int(outcomes.max()) + 1
    codes, often = torch.unique(contexts * size + outcomes, return_counts=True)
    order = often.argsort(descending=True, stable=True)
    order = order[(codes[order] // size).argsort(stable=True)]
    context, outcome = codes[order] // size, codes[order] % size
    first = torch.cat((torch.ones_like(context[:1], dtype=torch.bool), context[1:] != context[:-1]))
    return Table(context[first], outcome[first])


def bigram(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the token that training wanted most often after the token that was read last."""
    table = counted(_bigrams(each.batch) for each in training)
    return table.of(test.tokens.gather(-1, test.positions))


def _bigrams(batch: Batch) -> tuple[Tensor, Tensor]:
    scored = batch.answers != NO_ANSWER
    return batch.tokens.gather(-1, batch.positions)[scored], batch.answers[scored]

"""Predictors that copy a value without reading the keys, for sequences that begin with their pairs.

The pairs are key value key value ...; answers are one token. Letters in shapes: N sequences, P pairs, Q scored
positions.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import TaskConfig
from mclab.tasks.base import NO_ANSWER, Batch
from mclab.tasks.predictors.table import TrainingSet, counted
from mclab.tasks.stream import below, mix, numbers, salts

#: The number of low bits of a context that hold the position; the bits above hold the number of pairs.
_FIELD = 20


class _Pairs(NamedTuple):
    """The `values` [N, P] of each sequence in their order, and the `number` [N, 1] of pairs in the sequence."""

    values: Tensor
    number: Tensor


def latest(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of the last pair."""
    found = _pairs(config, test)
    return _chosen(test, found, found.number - 1)


def some(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of a random pair, drawn separately for each question."""
    tokens, found = test.tokens.flatten(0, 1), _pairs(config, test)
    keys = mix((tokens * salts(tokens.shape[-1], tokens.device)).sum(-1))
    return _chosen(test, found, below(keys, test.answers.shape[-1], found.number))


def most_frequent(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value that occurs in most pairs."""
    values, number = _pairs(config, test)
    assert (number == values.shape[-1]).all(), "a value that pads would be counted"
    ordered, place = values.sort(-1).values, numbers(values.shape[-1], torch.int64, values.device)
    new = torch.cat((torch.ones_like(ordered[:, :1]), (ordered[:, 1:] != ordered[:, :-1]).to(torch.int64)), -1)
    before = place - (new * place).cummax(-1).values  # how often the value occurred before
    return ordered.gather(-1, before.argmax(-1, keepdim=True)).expand(test.answers.shape[1:]).view(test.answers.shape)


def by_position(config: TaskConfig, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of the pair that training asked most often at the same position, given as many pairs."""
    table = counted(_asked(each) for each in training)
    found = _pairs(config, test)
    return _chosen(test, found, table.of(_contexts(test, found)).minimum(found.number - 1))


def _pairs(config: TaskConfig, batch: Batch) -> _Pairs:
    """Return the values of each sequence and the number of its pairs.

    In mqar each pair is asked once, so there are as many pairs as questions; in ar the pairs fill the sequence.
    """
    tokens, answers = batch.tokens.flatten(0, 1), batch.answers.flatten(0, 1)
    if config.name == "mqar":
        values = tokens[:, 1 : 2 * answers.shape[-1] : 2]
        return _Pairs(values, (answers != NO_ANSWER).sum(-1, keepdim=True))
    values = tokens[:, 1:-2:2]
    return _Pairs(values, torch.full_like(answers, values.shape[-1]))


def _contexts(batch: Batch, found: _Pairs) -> Tensor:
    return (found.number << _FIELD) + batch.positions.flatten(0, 1)


def _asked(each: TrainingSet) -> tuple[Tensor, Tensor]:
    """Return two flat tensors: the context of each question, and the number of the pair that answers it.

    If several pairs answer a question, the question is repeated for each.
    """
    config, batch = each
    found, answers = _pairs(config, batch), batch.answers.flatten(0, 1)
    if config.name == "mqar":  # question i belongs to pair i
        row, pair = (answers != NO_ANSWER).nonzero(as_tuple=True)
        return _contexts(batch, found)[row, pair], pair
    row, pair = (found.values == answers).nonzero(as_tuple=True)
    return _contexts(batch, found)[row, 0], pair


def _chosen(test: Batch, found: _Pairs, pair: Tensor) -> Tensor:
    """Return [R, B, Q]: the values of the pairs whose numbers are `pair`, [N, 1] or [N, Q]."""
    return found.values.gather(-1, pair.expand(test.answers.shape[1:])).view(test.answers.shape)

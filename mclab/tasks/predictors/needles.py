"""Predictors for a haystack that do not search for the asked key: each copies the whole value of one of the needles.

A value that was already an input is not predicted again. If a key has several values, only needles after the last such
value are candidates for the next one, since the values are wanted in the order of the haystack. Letters in shapes: N
sequences, J needles in the order of their places, S wanted values, v tokens of one value.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import NiahTask
from mclab.config.task.niah import KEY
from mclab.tasks.base import Batch
from mclab.tasks.predictors.table import TrainingSet
from mclab.tasks.stream import mix, numbers, salts, scalar, words

#: The number of bits of a place as a fixed-point fraction of the way from the first place to the last, in which
#: sequences of different length can be compared.
_WAY = 20
#: A place counts as asked more (or less) often than by chance only if the difference is more than this many standard
#: errors.
_SURE = 4.0


class _Needles(NamedTuple):
    """The needles of each sequence in the order of their places: `values` [N, J, v] and `places` [N, J].

    `wanted` [N, S] says which needle has each wanted value.
    """

    values: Tensor
    places: Tensor
    wanted: Tensor


def first(config: NiahTask, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of the first needle."""
    found = _needles(config, test)
    return _copied(config, test, found, -_ordinal(found).expand_as(found.places))


def latest(config: NiahTask, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of the last needle."""
    found = _needles(config, test)
    return _copied(config, test, found, _ordinal(found).expand_as(found.places))


def some(config: NiahTask, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of a random needle."""
    found = _needles(config, test)
    return _copied(config, test, found, _lots(test, found))


def key_blind(config: NiahTask, test: Batch, training: Sequence[TrainingSet]) -> Tensor:
    """Predict the value of the needle whose place was asked most often in training, relative to chance.

    Among equally good needles a random one is taken.
    """
    found = _needles(config, test)
    merits = _merits(training, _ways(config, found.places))
    return _copied(config, test, found, (merits << 31) + _lots(test, found))


def _needles(config: NiahTask, batch: Batch) -> _Needles:
    tokens, answers = batch.tokens.flatten(0, 1), batch.answers.flatten(0, 1)
    count, width = config.keys * config.shape.values, config.value_tokens
    hay = tokens[:, : config.length - config.question_tokens]
    starts = (hay == KEY).nonzero()[:, 1].view(len(tokens), count)
    ahead = config.needle_tokens - width + numbers(width, torch.int64, tokens.device)
    values = tokens.gather(-1, (starts.unsqueeze(-1) + ahead).flatten(1)).view(len(tokens), count, width)
    places = starts - numbers(count, torch.int64, tokens.device) * (config.needle_tokens - 1)
    slots = answers.unflatten(-1, (-1, width)).unbind(1)
    wanted = torch.stack([(values == slot.unsqueeze(1)).all(-1).to(torch.int64).argmax(-1) for slot in slots], -1)
    return _Needles(values, places, wanted)


def _ordinal(found: _Needles) -> Tensor:
    return numbers(found.places.shape[-1], torch.int64, found.places.device)


def _ways(config: NiahTask, places: Tensor) -> Tensor:
    return (places << _WAY) // max(1, config.places - 1)


def _lots(batch: Batch, found: _Needles) -> Tensor:
    """Return [N, J]: a random number below 2**31 for each needle; it depends only on the tokens of the sequence."""
    tokens = batch.tokens.flatten(0, 1)
    return words(mix((tokens * salts(tokens.shape[-1], tokens.device)).sum(-1)), found.places.shape[-1]).to(torch.int64)


def _merits(training: Sequence[TrainingSet], ways: Tensor) -> Tensor:
    """Return for each place in `ways` how often its needle was asked first in training, relative to chance, in
    thousandths.

    It is 1000 if there is not enough evidence: the place never held a needle in training, or the difference from chance
    is at most `_SURE` standard errors.
    """
    held, asked, chance = (torch.cat(parts) for parts in zip(*map(_places_of, training), strict=True))
    places, at = torch.unique(held, return_inverse=True)
    zeros = torch.zeros(len(places), dtype=torch.float64)
    hits = zeros.scatter_add(0, at, asked)
    expected = zeros.scatter_add(0, at, chance)
    doubt = zeros.scatter_add(0, at, chance * (1 - chance)).sqrt() * _SURE
    lift = torch.where((hits - expected).abs() > doubt, 1000 * hits / expected, 1000.0).to(torch.int64)
    near = torch.searchsorted(places, ways).clamp_(max=len(places) - 1)
    return torch.where(places[near] == ways, lift[near], 1000)


def _places_of(each: TrainingSet) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each needle its place, whether it was asked first (0 or 1), and the probability of that by chance."""
    assert isinstance(each.config, NiahTask)
    found = _needles(each.config, each.batch)
    asked = (_ordinal(found) == found.wanted[:, :1]).to(torch.float64)
    chance = torch.full_like(asked, 1 / asked.shape[-1])
    return _ways(each.config, found.places).flatten(), asked.flatten(), chance.flatten()


def _copied(config: NiahTask, test: Batch, found: _Needles, merits: Tensor) -> Tensor:
    """Return [R, B, Q]: for each wanted value, the value of the candidate with the highest of `merits` [N, J].

    Among equally good candidates the first one is taken.
    """
    free = torch.ones_like(found.places, dtype=torch.bool)
    worst, picks = scalar(torch.iinfo(torch.int64).min, torch.int64), []
    for slot, owner in enumerate(found.wanted.split(1, -1)):
        behind = free & (_ordinal(found) > found.wanted[:, slot - 1 : slot]) if slot % config.shape.values else free
        picks.append(torch.where(behind, merits, worst).argmax(-1, keepdim=True))
        free = free.scatter(-1, owner, value=False)
    chosen = torch.cat(picks, -1).unsqueeze(-1).expand(-1, -1, found.values.shape[-1])
    return found.values.gather(1, chosen).view(test.answers.shape)

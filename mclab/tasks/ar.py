"""Associative recall: a sequence holds key-value pairs, a separator and one key; the value of that key is wanted.

Each sequence has its own random map from keys to values, in which different keys have different values. Its pairs are
drawn from this map with replacement. The value of the last key is wanted next and is no part of the input. Every key
that occurs is asked with equal probability: otherwise the most frequent value would be right three times as often as a
random guess. Letters in shapes: N sequences, P pairs, T tokens.

See docs/equations.md#ar.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import ArTask
from mclab.constants import integers
from mclab.tasks.base import Batch, Role
from mclab.tasks.draws import distinct, words_for
from mclab.tasks.splits import check_split, settle
from mclab.tasks.stream import below, fork, mix, numbers, salts, sample_keys, words

#: The number of bits per token in an integer that holds two tokens.
_FIELD = 20
#: The number of the first stream of attempts; a sample has one stream per attempt.
_ATTEMPTS = 1
#: The streams of one attempt: the keys, which of them is asked, the values.
_KEYS, _ASKED, _VALUES = 1, 2, 3


class _Core(NamedTuple):
    """The data that identify a sequence: `keys` and `values` [N, P], the key that is `asked` [N] and its value
    `answers` [N].

    `fingerprints` [N] is a hash of these.
    """

    keys: Tensor
    values: Tensor
    asked: Tensor
    answers: Tensor
    fingerprints: Tensor


def batch(
    config: ArTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count.

    Q is 1, for the answer; on train with `loss: all` it is T, for the next token at every position. Raises `ValueError`
    for an unknown split, an empty range, and a space too small for the split.
    """
    check_split(split)
    samples = sample_keys(f"ar/{split}", seeds, start, count, torch.device(device)).flatten()

    def draw(rows: Tensor | slice, attempts: Tensor) -> _Core:
        return _core(config, samples[rows], attempts)

    core = settle(draw, len(samples), config.space(), split, samples.device)
    tokens, wanted = _assemble(config, core)
    scored = config.length if split == "train" and config.loss == "all" else 1
    positions = numbers(config.length, torch.int64, samples.device)[-scored:].repeat(len(samples), 1)
    tensors = (tokens, positions, wanted[:, -scored:], torch.zeros_like(samples), core.fingerprints)
    return Batch._make(tensor.reshape(len(seeds), count, *tensor.shape[1:]) for tensor in tensors)


def roles(config: ArTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: the `Role` of every token."""
    layout = (Role.KEY, Role.VALUE) * config.pairs + (Role.MARK, Role.QUERY)
    return integers(tuple(map(int, layout)), batch.tokens.device).expand_as(batch.tokens)


def token_name(config: ArTask, token: int) -> str:
    """Return the name of a token: `|` for the separator; k or v with its number for a key or a value (k2, v13)."""
    return f"{'v' if token >= config.vocab // 2 else 'k'}{token}" if token else "|"


def _core(config: ArTask, samples: Tensor, attempts: Tensor) -> _Core:
    """Draw the sequences of [N] `samples` at their [N] (or [1]) `attempts`.

    The key that occurs first gets the first of the drawn values, the next new key gets the second, and so on.
    """
    half, device = config.vocab // 2, samples.device
    stream = fork(samples, attempts.unsqueeze(-1) + _ATTEMPTS).squeeze(-1)
    drawn = fork(stream, integers((_KEYS, _ASKED, _VALUES), device))
    keys = below(drawn[:, 0], config.pairs, half - 1) + 1
    rank = _ranks(keys)
    size = config.vocab - half
    symbols = distinct(words(drawn[:, 2], words_for((size,))).unsqueeze(-2), config.keys, (size,)).squeeze(-2) + half
    values = symbols.gather(-1, rank)
    which = below(drawn[:, 1], 1, rank.amax(-1, keepdim=True) + 1)
    place = (rank == which).to(torch.int64).argmax(-1, keepdim=True)
    asked, answers = keys.gather(-1, place).squeeze(-1), values.gather(-1, place).squeeze(-1)
    fields = torch.add(keys, values, alpha=1 << _FIELD).add_(salts(config.pairs, device))
    return _Core(keys, values, asked, answers, mix(fields).sum(-1) + mix(asked.clone()))


def _ranks(keys: Tensor) -> Tensor:
    """Return [N, P]: the rank of each key by first occurrence: 0 for the key that occurs first, 1 for the next new key,
    ...

    Equal keys have equal ranks.
    """
    count = keys.shape[-1]
    place = numbers(count, torch.int64, keys.device)
    ordered = torch.add(place, keys, alpha=count).sort(-1).values  # sorted by key; equal keys by position
    key, order = ordered // count, ordered % count
    begins = torch.cat((torch.ones_like(key[:, :1]), (key[:, 1:] != key[:, :-1]).to(torch.int64)), -1)
    first = order.gather(-1, (begins * place).cummax(-1).values)
    first = torch.zeros_like(first).scatter_(-1, order, first)
    return ((first == place).cumsum(-1) - 1).gather(-1, first)


def _assemble(config: ArTask, core: _Core) -> tuple[Tensor, Tensor]:
    """Return the tokens [N, T], and for each of them the token that follows it [N, T]."""
    separator = torch.zeros_like(core.asked)
    paired = torch.stack((core.keys, core.values), -1).flatten(1)
    ends = torch.stack((separator, core.asked, core.answers), -1)
    whole = torch.cat((paired, ends), -1)
    return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()

"""Associative recall: pairs drawn with replacement from a map of the sequence's own, a separator, one key.

The value of that key is wanted next and is no part of the input. Different keys have different values, and every key
that occurs is asked alike often: otherwise the value seen most often would be right three times as often as a guess.
Letters in shapes: N sequences, P pairs, T tokens.

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

#: Bits for a token where two share one integer.
_FIELD = 20
#: Streams of one sample: one for each attempt.
_ATTEMPTS = 1
#: Streams of one attempt: the keys, which of them is asked, the values.
_KEYS, _ASKED, _VALUES = 1, 2, 3


class _Core(NamedTuple):
    """What makes a sequence itself: [N, P] keys and values, [N] the key that is asked and its value."""

    keys: Tensor
    values: Tensor
    asked: Tensor
    answers: Tensor
    fingerprints: Tensor


def batch(
    config: ArTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Samples `start` to `start + count - 1` of `split`, for each seed: R = len(seeds), B = count.

    Q is 1, the answer; on train with `loss: all` it is T, the next token everywhere. Raises `ValueError` for an
    unknown split, an empty range, and a space too small for the split.
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
    """[R, B, T] int64: the `Role` of every token."""
    layout = (Role.KEY, Role.VALUE) * config.pairs + (Role.MARK, Role.QUERY)
    return integers(tuple(map(int, layout)), batch.tokens.device).expand_as(batch.tokens)


def token_name(config: ArTask, token: int) -> str:
    """The separator is |, keys and values have the token's own number: k2, v13."""
    return f"{'v' if token >= config.vocab // 2 else 'k'}{token}" if token else "|"


def _core(config: ArTask, samples: Tensor, attempts: Tensor) -> _Core:
    """[N] samples at their [N] (or [1]) attempts. Keys get their values in the order in which they first come."""
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
    """[N, P] keys to [N, P]: 0 for the key that comes first and wherever it comes again, 1 for the next new one, ..."""
    count = keys.shape[-1]
    place = numbers(count, torch.int64, keys.device)
    ordered = torch.add(place, keys, alpha=count).sort(-1).values  # by key, equal ones by place
    key, order = ordered // count, ordered % count
    begins = torch.cat((torch.ones_like(key[:, :1]), (key[:, 1:] != key[:, :-1]).to(torch.int64)), -1)
    first = order.gather(-1, (begins * place).cummax(-1).values)
    first = torch.zeros_like(first).scatter_(-1, order, first)
    return ((first == place).cumsum(-1) - 1).gather(-1, first)


def _assemble(config: ArTask, core: _Core) -> tuple[Tensor, Tensor]:
    """The [N, T] tokens, and the [N, T] tokens wanted after each."""
    separator = torch.zeros_like(core.asked)
    paired = torch.stack((core.keys, core.values), -1).flatten(1)
    ends = torch.stack((separator, core.asked, core.answers), -1)
    whole = torch.cat((paired, ends), -1)
    return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()

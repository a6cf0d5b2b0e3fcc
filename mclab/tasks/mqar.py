"""Multi-query associative recall (Zoology, Arora et al., arXiv 2312.04927, their multiquery_ar task).

A sequence begins with its pairs (key value key value ...). Then each key is asked once, at an even position, where its
value is wanted. Everything else is filler: token 0, or random tokens. Letters in shapes: N sequences, P the largest
number of pairs, T tokens.

See docs/equations.md#mqar.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import MqarTask
from mclab.constants import integers
from mclab.tasks.base import NO_ANSWER, Batch, Role
from mclab.tasks.draws import distinct, one_of, power_costs, race, words_for
from mclab.tasks.splits import check_split, settle
from mclab.tasks.stream import below, fork, mix, salts, sample_keys, words

#: The number of bits per token or position in an integer that holds three of them.
_FIELD = 20
#: The streams of one sample: its slice, its filler, then one per attempt to draw its pairs and slots.
_SLICE, _FILLER, _ATTEMPTS = 1, 2, 3
#: The exponent of the slot weights a * g ** (a - 1), a = 0.01, which fall as 1 / g ** 0.99.
_POWER = "0.99"


class _Core(NamedTuple):
    """The data that identify a sequence: pair i is keys[:, i] and values[:, i], asked at positions[:, i]."""

    keys: Tensor
    values: Tensor
    positions: Tensor
    fingerprints: Tensor


def batch(
    config: MqarTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count, Q = P.

    Query i of a sequence asks the key of its pair i, so the positions are not sorted. Raises `ValueError` for an
    unknown split, an empty range, and a space too small for the split.
    """
    check_split(split)
    assert max(config.vocab, config.length) <= 1 << _FIELD  # the config has the same bound
    samples = sample_keys(f"mqar/{split}", seeds, start, count, torch.device(device)).flatten()
    # the slice stays when an attempt is repeated, so slices are equally frequent
    slices = one_of(samples, _SLICE, len(config.pairs))
    pairs = integers(config.pairs, samples.device)[slices].unsqueeze(-1)

    def draw(rows: Tensor | slice, attempts: Tensor) -> _Core:
        return _core(config, samples[rows], pairs[rows], attempts)

    core = settle(draw, len(samples), config.space(), split, samples.device)
    tokens, answers = _assemble(config, samples, pairs, core)
    tensors = (tokens, core.positions, answers, slices, core.fingerprints)
    return Batch._make(tensor.view(len(seeds), count, *tensor.shape[1:]) for tensor in tensors)


def roles(config: MqarTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: the `Role` of every token."""
    scored = batch.answers != NO_ANSWER
    place = torch.arange(config.length, device=batch.tokens.device)
    paired = place < 2 * scored.sum(-1, keepdim=True)
    named = torch.where(place % 2 == 0, int(Role.KEY), int(Role.VALUE)) * paired
    asked = torch.zeros_like(named).scatter_add_(-1, batch.positions, scored.to(torch.int64) * Role.QUERY)
    return named + asked


def token_name(config: MqarTask, token: int) -> str:
    """Return the name of a token: k or v with its number for a key or a value (k2, v33), and 0."""
    return f"{'v' if token >= config.vocab // 2 else 'k'}{token}" if token else "0"


def _core(config: MqarTask, samples: Tensor, pairs: Tensor, attempts: Tensor) -> _Core:
    """Draw the pairs and positions of [N] `samples`, each of which has `pairs` [N, 1] pairs.

    `attempts` is [N] (or [1]). Values for pairs that a sequence does not have are 0.
    """
    most, half, device = config.pairs[-1], config.vocab // 2, samples.device
    sizes, slots = (half - 1, config.vocab - half), config.length // 2 - config.pairs[0]
    cut = 2 * words_for(sizes)
    drawn = words(fork(samples, attempts.unsqueeze(-1) + _ATTEMPTS).squeeze(-1), cut + slots)
    symbols = distinct(drawn[:, :cut].view(len(samples), 2, -1), most, sizes)
    costs = power_costs(slots, _POWER, device) if config.spread == "power" else None
    limits = config.length // 2 - pairs if len(config.pairs) > 1 else None
    chosen = race(drawn[:, cut:], most, costs, limits)
    keys, values, positions = symbols[:, 0] + 1, symbols[:, 1] + half, (chosen + pairs).mul_(2)
    live = _live(config, pairs)
    if live is not None:
        keys, values, positions = keys * live, values * live, positions * live
    return _Core(keys, values, positions, _fingerprint(keys, values, positions))


def _live(config: MqarTask, pairs: Tensor) -> Tensor | None:
    """Return [N, P] bool: which of the P pairs each sequence has; `None` if every sequence has all of them."""
    if len(config.pairs) == 1:
        return None
    return torch.arange(config.pairs[-1], device=pairs.device) < pairs


def _fingerprint(keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return [N] int64: a hash over the pairs in their order.

    The padding adds the same number to the hash of every sequence with equally many pairs.
    """
    fields = torch.add(positions, values, alpha=1 << _FIELD).add_(keys, alpha=1 << 2 * _FIELD)
    return mix(fields.add_(salts(keys.shape[-1], keys.device))).sum(-1)


def _assemble(config: MqarTask, samples: Tensor, pairs: Tensor, core: _Core) -> tuple[Tensor, Tensor]:
    """Return the tokens [N, T] and the answers [N, P]."""
    live, end = _live(config, pairs), 2 * config.pairs[-1]
    tokens = _filler(config, samples, pairs, core.keys)
    keys, values, asked, answers = core.keys, core.values, core.keys, core.values
    if live is not None:
        keys = torch.where(live, keys, tokens[:, 0:end:2])
        values = torch.where(live, values, tokens[:, 1:end:2])
        asked = torch.where(live, core.keys, core.keys[:, :1])  # padded positions are 0: keep the token there
        answers = torch.where(live, answers, NO_ANSWER)
    tokens[:, 0:end:2], tokens[:, 1:end:2] = keys, values
    return tokens.scatter_(-1, core.positions, asked), answers


def _filler(config: MqarTask, samples: Tensor, pairs: Tensor, keys: Tensor) -> Tensor:
    """Return [N, T]: zeros, or random tokens of the whole vocabulary (0 included) except the keys of the sequence.

    With `distractors` these keys occur too. The r-th token that is no key is r plus the number of keys below it; that
    is exact and rejects nothing.
    """
    shape = (len(samples), config.length)
    if config.filler == "zero":
        return torch.zeros(shape, dtype=torch.int64, device=samples.device)
    stream = fork(samples, integers((_FILLER,), samples.device)).squeeze(-1)
    if config.distractors:
        return below(stream, config.length, config.vocab)
    rank = below(stream, config.length, config.vocab - pairs)
    beyond = torch.where(keys > 0, keys, 2 * config.vocab).sort(dim=-1).values
    skipped = beyond - torch.arange(keys.shape[-1], device=keys.device)
    return rank + torch.searchsorted(skipped, rank, right=True)

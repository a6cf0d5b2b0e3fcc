"""Recall from the weights: a fixed random map from keys of two tokens to values. After each key its value is wanted.

The task follows the memorisation task of MAD (Poli et al., arXiv 2403.17844), where keys are one token and the map is
the same for all seeds. It stands in for what a language model knows. Letters in shapes: R seeds, N sequences, P keys in
one sequence.

See docs/equations.md#facts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import FactsTask
from mclab.constants import integers
from mclab.tasks.base import Batch, Role
from mclab.tasks.splits import check_split, settle
from mclab.tasks.stream import below, fork, mix, numbers, salts, sample_keys

#: The number of the first stream of attempts of a sample; the number of the stream of a seed's map.
_ATTEMPTS, _MAP = 1, 1


class _Asked(NamedTuple):
    """The numbers of the facts that are asked, `facts` [N, P], and `fingerprints` [N], a hash of them."""

    facts: Tensor
    fingerprints: Tensor


def batch(
    config: FactsTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count, Q = P.

    In every split, facts are drawn with replacement from the whole map: test asks the facts of training in other
    orders. Raises `ValueError` for an unknown split, an empty range, and a space too small for the split.
    """
    check_split(split)
    samples = sample_keys(f"facts/{split}", seeds, start, count, torch.device(device)).flatten()
    asked = config.length // 2

    def draw(rows: Tensor | slice, attempts: Tensor) -> _Asked:
        stream = fork(samples[rows], attempts.unsqueeze(-1) + _ATTEMPTS).squeeze(-1)
        facts = below(stream, asked, config.facts)
        return _Asked(facts, mix(facts + salts(asked, samples.device)).sum(-1))

    drawn = settle(draw, len(samples), config.space(), split, samples.device)
    facts = drawn.facts.view(len(seeds), count, asked)
    tokens = torch.stack((facts // config.base, facts % config.base + config.base), -1).flatten(2)
    answers = values(config, seeds, samples.device).unsqueeze(1).expand(-1, count, -1).gather(-1, facts)
    positions = (numbers(asked, torch.int64, samples.device) * 2 + 1).expand_as(facts).contiguous()
    shape = facts.shape[:2]
    return Batch(tokens, positions, answers, torch.zeros_like(samples).view(shape), drawn.fingerprints.view(shape))


def values(config: FactsTask, seeds: Sequence[int], device: torch.device) -> Tensor:
    """Return [R, facts] int64: the map of each seed, as the token of the value of every key."""
    keys = fork(sample_keys("facts/map", seeds, 0, 1, device).flatten(), integers((_MAP,), device)).squeeze(-1)
    return below(keys, config.facts, config.values) + 2 * config.base


def roles(config: FactsTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: the `Role` of every token."""
    layout = (Role.KEY, Role.QUERY) * (config.length // 2)
    return integers(tuple(map(int, layout)), batch.tokens.device).expand_as(batch.tokens)


def token_name(config: FactsTask, token: int) -> str:
    """Return the name of a token: a or b for the two tokens of a key, v for a value, then its number: a3, b12, v7."""
    alphabet = min(token // config.base, 2)
    return f"{'abv'[alphabet]}{token - alphabet * config.base}"

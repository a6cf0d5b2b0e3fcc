"""Needles in a haystack, RULER's tasks token by token (Hsieh et al., arXiv 2404.06654).

A haystack holds needles `KEY key IS value`. After it comes `ASK key`, and the value is wanted token by token; each of
its tokens is an input before the next one is wanted. In training all needles are at random places, and which keys are
asked does not depend on the places. On valid and test, one needle of the key that is asked first is at the place that
the depth sets, and all other needles are at random places. Letters in shapes: N sequences, K keys, J needles (those of
the first key, then those of the second, ...), A tokens of an answer, T tokens.

See docs/equations.md#niah.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.config.task import NiahTask
from mclab.config.task.niah import ASK, DIGITS, IS, KEY, NUMBER_TOKENS, UUID_TOKENS, WORDS, haystack_words, key_words
from mclab.constants import integers
from mclab.tasks.base import NO_SLICE, Batch, Role
from mclab.tasks.draws import distinct, one_of, words_for
from mclab.tasks.haystack import language, noise, text
from mclab.tasks.splits import check_split, settle
from mclab.tasks.stream import fork, mix, numbers, salts, sample_keys, words

#: The streams of one sample: its slice, its filler, then one per attempt to draw its keys, values and places.
_SLICE, _FILLER, _ATTEMPTS = 1, 2, 3
#: The streams of one attempt: the keys, the values, the places of the needles.
_KEYS, _VALUES, _PLACES = 1, 2, 3
#: The domain of the stream from which a seed's language is drawn, the same for every split.
_LANGUAGE = "niah/language"


class _Core(NamedTuple):
    """The data that identify a sequence: the tokens of its keys and values, and the places of its needles.

    `keys` is [N, K, k], `values` [N, J, v], `places` [N, J]. The first keys are those that are asked, in this order.
    """

    keys: Tensor
    values: Tensor
    places: Tensor
    fingerprints: Tensor


def batch(
    config: NiahTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count.

    Q is the number of tokens of the answer. Raises `ValueError` for an unknown split, an empty range, and a space too
    small for the split.
    """
    check_split(split)
    samples = sample_keys(f"niah/{split}", seeds, start, count, torch.device(device)).flatten()
    slices, first = torch.full_like(samples, NO_SLICE), None
    if split != "train":
        # the slice stays when an attempt is repeated, so slices are equally frequent
        slices = one_of(samples, _SLICE, len(config.depth))
        first = integers(tuple(map(config.place, config.depth)), samples.device)[slices].unsqueeze(-1)

    def draw(rows: Tensor | slice, attempts: Tensor) -> _Core:
        return _core(config, samples[rows], first if first is None else first[rows], attempts)

    core = settle(draw, len(samples), config.space(), split, samples.device)
    answers = _answers(config, core)
    tokens = torch.cat((_haystack(config, seeds, samples, core), _question(config, core, answers)), -1)
    positions = integers(_scored(config), samples.device).repeat(len(samples), 1)
    tensors = (tokens, positions, answers.flatten(1), slices, core.fingerprints)
    return Batch._make(tensor.view(len(seeds), count, *tensor.shape[1:]) for tensor in tensors)


def roles(config: NiahTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: the `Role` of every token."""
    hay = batch.tokens[..., : config.length - config.question_tokens]
    place = numbers(hay.shape[-1], torch.int64, hay.device)
    behind = place - torch.where(hay == KEY, place, -2).cummax(-1).values
    named = torch.where(behind <= config.key_tokens, int(Role.KEY), int(Role.VALUE))
    named = torch.where((hay == KEY) | (hay == IS), int(Role.MARK), named)
    named = torch.where((hay >= WORDS) & (behind != 1), int(Role.FILLER), named)
    ending = (
        Role.MARK,
        *[Role.QUERY] * config.key_tokens,
        *[Role.ANSWER] * (config.turn_tokens - config.key_tokens - 1),
    )
    asked = integers(tuple(map(int, ending * config.shape.asked))[:-1], hay.device)
    return torch.cat((named, asked.expand(*hay.shape[:-1], -1)), -1)


def token_name(config: NiahTask, token: int) -> str:
    """Return the name of a token:

    KEY, IS, ASK, a digit 0 to f, a haystack word w0, w1, ..., or a key word k0, k1, ...
    """
    first_key = WORDS + haystack_words(config.vocab)
    if token < DIGITS:
        return {KEY: "KEY", IS: "IS", ASK: "ASK"}[token]
    if token < WORDS:
        return f"{token - DIGITS:x}"
    return f"w{token - WORDS}" if token < first_key else f"k{token - first_key}"


def _core(config: NiahTask, samples: Tensor, first: Tensor | None, attempts: Tensor) -> _Core:
    """Draw the sequences of [N] `samples` at their [N] (or [1]) `attempts`.

    `first` [N, 1] gives the place of the first needle of each sequence; if it is None, that place is drawn too.
    """
    stream = fork(samples, attempts.unsqueeze(-1) + _ATTEMPTS).squeeze(-1)
    drawn = fork(stream, integers((_KEYS, _VALUES, _PLACES), samples.device))
    needles = config.keys * config.shape.values
    keys = _uuids(drawn[:, 0], config.keys) if config.shape.key == "uuid" else _key_words(config, drawn[:, 0])
    values = _uuids(drawn[:, 1], needles) if config.shape.value == "uuid" else _numbers(drawn[:, 1], needles)
    if first is None:
        places = _distinct(drawn[:, 2], needles, config.places)
    elif needles == 1:
        places = first
    else:
        others = _distinct(drawn[:, 2], needles - 1, config.places - 1)
        places = torch.cat((first, others + (others >= first)), -1)
    return _Core(keys, values, places, fingerprint(config, keys, values, places))


def _distinct(stream: Tensor, count: int, size: int) -> Tensor:
    """Return [N, count] int64: for each random stream, `count` different random numbers from 0 to `size` - 1.

    `stream` [N] holds the keys of the streams.
    """
    return distinct(words(stream, words_for((size,))).unsqueeze(-2), count, (size,)).squeeze(-2)


def _key_words(config: NiahTask, stream: Tensor) -> Tensor:
    """Return [N, K, 1]: the tokens of K different key words."""
    first = WORDS + haystack_words(config.vocab)
    return (_distinct(stream, config.keys, key_words(config.vocab)) + first).unsqueeze(-1)


def _numbers(stream: Tensor, count: int) -> Tensor:
    """Return [N, count, 7]: the digits of `count` different numbers, as tokens."""
    powers = tuple(10**digit for digit in reversed(range(NUMBER_TOKENS)))
    drawn = _distinct(stream, count, 10**NUMBER_TOKENS).unsqueeze(-1)
    return (drawn // integers(powers, stream.device)).remainder_(10).add_(DIGITS)


def _uuids(stream: Tensor, count: int) -> Tensor:
    """Return [N, count, 32]: hexadecimal digits as tokens.

    A UUID has 128 random bits, so in practice no two are equal.
    """
    digits = words(stream, count * UUID_TOKENS) >> 27
    return digits.to(torch.int64).add_(DIGITS).view(-1, count, UUID_TOKENS)


def fingerprint(config: NiahTask, keys: Tensor, values: Tensor, places: Tensor) -> Tensor:
    """Return [N] int64: a hash of the needles, in any order, and of the asked keys, in their order."""
    named = _hash(keys)
    asked = mix(named[:, : config.shape.asked] + salts(config.shape.asked, keys.device)).sum(-1)
    owners = named.repeat_interleave(config.shape.values, -1)
    return mix(mix(owners + _hash(values)).add_(places)).sum(-1) + asked


def _hash(symbols: Tensor) -> Tensor:
    """Return [N, J] int64: a hash of the w tokens of each of `symbols` [N, J, w]."""
    return mix((symbols * salts(symbols.shape[-1], symbols.device)).sum(-1))


def _answers(config: NiahTask, core: _Core) -> Tensor:
    """Return [N, asked, A]: the values of each asked key, in the order of the haystack."""
    rows, asked, each = len(core.keys), config.shape.asked, config.shape.values
    values = core.values[:, : asked * each].view(rows, asked, each, -1)
    if each > 1:
        order = core.places[:, : asked * each].view(rows, asked, each).argsort(-1)
        values = values.gather(-2, order.unsqueeze(-1).expand_as(values))
    return values.reshape(rows, asked, -1)


def _haystack(config: NiahTask, seeds: Sequence[int], samples: Tensor, core: _Core) -> Tensor:
    """Return [N, T - question]: the needles at their places, and filler everywhere else."""
    width, rows, needles = config.needle_tokens, len(samples), core.places.shape[-1]
    before = core.places.argsort(-1).argsort(-1)  # the number of needles before each needle
    starts = torch.add(core.places, before, alpha=width - 1).unsqueeze(-1)
    spots = (starts + numbers(width, torch.int64, samples.device)).flatten(1)
    tokens = samples.new_full((rows, needles * width + config.filler_tokens), -1)
    tokens.scatter_(-1, spots, _needles(config, core).flatten(1))
    if not config.filler_tokens:
        return tokens
    free = tokens < 0
    filler = _filler(config, seeds, samples).gather(-1, free.cumsum(-1).sub_(1).clamp_(min=0))
    return torch.where(free, filler, tokens)


def _needles(config: NiahTask, core: _Core) -> Tensor:
    """Return [N, J, 2 + k + v]: KEY key IS value."""
    keys = core.keys.repeat_interleave(config.shape.values, -2)
    mark = core.places.unsqueeze(-1)
    return torch.cat((torch.full_like(mark, KEY), keys, torch.full_like(mark, IS), core.values), -1)


def _filler(config: NiahTask, seeds: Sequence[int], samples: Tensor) -> Tensor:
    """Return [N, filler] words of the haystack."""
    if config.shape.haystack != "text":
        return noise(len(samples), config.filler_tokens, samples.device) + WORDS
    spoken = language(_LANGUAGE, tuple(seeds), haystack_words(config.vocab), samples.device)
    stream = fork(samples, integers((_FILLER,), samples.device)).squeeze(-1)
    return text(spoken, stream, config.filler_tokens) + WORDS


def _question(config: NiahTask, core: _Core, answers: Tensor) -> Tensor:
    """Return [N, question]: `ASK key values` for each asked key, without the last token."""
    keys = core.keys[:, : config.shape.asked]
    turns = torch.cat((torch.full_like(keys[..., :1], ASK), keys, answers), -1)
    return turns.flatten(1)[:, :-1]


def _scored(config: NiahTask) -> tuple[int, ...]:
    """Return the positions at which tokens of the answers are wanted: for each asked key, from its last token on."""
    start = config.length - config.question_tokens + config.key_tokens
    wanted = config.turn_tokens - 1 - config.key_tokens
    return tuple(start + turn * config.turn_tokens + at for turn in range(config.shape.asked) for at in range(wanted))

"""Make the filler of a haystack: one sentence again and again, or text in a Markov language that depends on the seed.

Letters in shapes: N sequences, F tokens of filler, W words in the vocabulary of the language, M words in the sample
text whose pairs of neighbours are the transitions of the language.

See docs/equations.md#niah.
"""

from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.tasks.draws import race
from mclab.tasks.stream import fork, sample_keys, scalar, words

#: "the grass is green, the sky is blue, the sun is yellow", with a number for each word.
SENTENCE = (0, 1, 2, 3, 0, 4, 2, 5, 0, 6, 2, 7)


def noise(rows: int, count: int, device: torch.device) -> Tensor:
    """Return [rows, count] int64: in every row the sentence, repeated from its start."""
    times = -(-count // len(SENTENCE))
    return integers(SENTENCE, device).repeat(times)[:count].expand(rows, count)


class Language(NamedTuple):
    """The bigrams of R circular texts of M words each, sorted by their first word.

    Bigram i is a word followed by followers[i]. The bigrams that begin with followers[i] are the sizes[i] bigrams from
    begins[i] on, so that a random walk needs no search for words. All three are [R * M] int64; `begins` counts over all
    texts.
    """

    followers: Tensor
    begins: Tensor
    sizes: Tensor
    length: int
    """M, the number of words in one text."""


def frequencies(vocab: int) -> tuple[int, ...]:
    """Return how often each of `vocab` words occurs in a text: 2 * vocab / rank, rounded up (Zipf)."""
    return tuple(-(-2 * vocab // rank) for rank in range(1, vocab + 1))


@lru_cache(maxsize=16)
def language(domain: str, seeds: tuple[int, ...], vocab: int, device: torch.device) -> Language:
    """Return the language of each seed: the bigrams of a circular text whose words are in random order.

    A word has as many followers as occurrences, so a random walk visits words with exactly the frequencies of the text.
    Since the text is a circle, a walk can reach every word from every other word.
    """
    counts = frequencies(vocab)
    length = sum(counts)
    text = integers(tuple(word for word in range(vocab) for _ in range(counts[word])), device)
    keys = fork(sample_keys(domain, seeds, 0, 1, device).flatten(), integers((1,), device)).flatten()
    circle = text[race(words(keys, length), length)]
    place = torch.arange(length, device=device)
    followers = circle.roll(-1, -1).gather(-1, (circle * length + place).argsort(-1))
    starts = integers((0, *accumulate(counts[:-1])), device)
    begins = starts[followers] + torch.arange(len(seeds), device=device).unsqueeze(-1) * length
    return Language(followers.flatten(), begins.flatten(), integers(counts, device)[followers].flatten(), length)


def text(spoken: Language, keys: Tensor, count: int) -> Tensor:
    """Return [N, count] int64: for each key, the words of a random walk that starts at a random position of the text.

    Of `keys` [N], the first N / R belong to the first of the R texts, the next N / R to the second, and so on.
    """
    per_text = len(keys) * spoken.length // len(spoken.followers)
    first = torch.arange(len(keys), device=keys.device) // per_text * spoken.length
    random = words(keys, count).to(torch.int64).t().contiguous()
    size, bits = torch.full_like(first, spoken.length), scalar(31, torch.int64)
    entries = torch.empty_like(random)
    for step in range(count):
        entry = torch.mul(random[step], size, out=entries[step]).bitwise_right_shift_(bits).add_(first)
        first, size = spoken.begins.index_select(0, entry), spoken.sizes.index_select(0, entry)
    return spoken.followers[entries.t()]

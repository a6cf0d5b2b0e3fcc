"""The language of a haystack: its words' frequencies, its neighbours, and whose it is."""

import torch
from scipy.stats import chisquare

from mclab.tasks.haystack import SENTENCE, frequencies, language, noise, text
from mclab.tasks.stream import fork, sample_keys

CPU = torch.device("cpu")
LUCKY = 1e-3  # the data is fixed, so a test at this level passes always or never


def spoken(count: int, length: int, seeds=(0,), words: int = 15) -> torch.Tensor:
    keys = fork(sample_keys("train", seeds, 0, count, CPU).flatten(), torch.tensor([2])).squeeze(-1)
    return text(language("words", seeds, words, CPU), keys, length)


def test_noise_is_the_sentence_again_and_again():
    assert noise(2, 14, CPU).tolist() == [[*SENTENCE, *SENTENCE[:2]]] * 2


def test_frequencies_are_zipfs():
    assert frequencies(6) == (12, 6, 4, 3, 3, 2)


def test_words_have_their_frequencies_from_the_first_to_the_last():
    said, expected = spoken(40_000, 30), torch.tensor(frequencies(15)).double()
    expected *= 40_000 / expected.sum()
    for at in (0, 1, 29):
        assert chisquare(torch.bincount(said[:, at], minlength=15), expected).pvalue > LUCKY


def test_a_word_is_followed_as_its_language_has_it():
    """The numbers of neighbours are those of the circular text, and the next word looks at the last one alone."""
    said, own = spoken(60_000, 3), language("words", (0,), 15, CPU)
    counts = torch.tensor(frequencies(15))
    first = torch.arange(15).repeat_interleave(counts)
    pairs = torch.bincount(first * 15 + own.followers, minlength=225).double()
    assert (pairs > 0).sum() < 120  # a word knows few of the others
    for at in (0, 1):
        seen = torch.bincount(said[:, at] * 15 + said[:, at + 1], minlength=225)
        assert not seen[pairs == 0].any()
        expected = pairs[pairs > 0] * 60_000 / pairs.sum()
        assert chisquare(seen[pairs > 0], expected).pvalue > LUCKY


def test_every_word_leads_to_every_other():
    own = language("words", tuple(range(20)), 15, CPU)
    first = torch.arange(15).repeat_interleave(torch.tensor(frequencies(15)))
    for followers in own.followers.view(20, -1):
        steps = torch.eye(15, dtype=torch.int64)
        steps[first, followers] = 1
        for _ in range(4):
            steps = (steps @ steps).clamp(max=1)
        assert steps.all()


def test_each_seed_has_a_language_of_its_own_and_hears_no_other():
    both = spoken(50, 40, seeds=(3, 4))
    assert torch.equal(both[:50], spoken(50, 40, seeds=(3,)))
    assert torch.equal(both[50:], spoken(50, 40, seeds=(4,)))
    one, other = (language("words", (seed,), 15, CPU).followers for seed in (3, 4))
    assert not torch.equal(one, other)

"""The stream against a scalar rewrite in Python's own integers, and against what a uniform source would give."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from mclab.tasks.stream import below, fork, mix, sample_keys, words

CPU = torch.device("cpu")
LUCKY = 1e-3  # the data is fixed, so a test at this level passes always or never


def keys(count: int, seed: int = 0) -> Tensor:
    return fork(sample_keys("test", [seed], 0, count, CPU).flatten(), torch.tensor([1])).flatten()


def signed32(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


def reference_words(key: int, count: int) -> list[int]:
    out = []
    for i in range(count):
        x = signed32(key + i * 0x9E3779B1)
        x = signed32((x ^ (x >> 16)) * 0x7FEB352D) ^ signed32(key >> 32)
        x = signed32((x ^ (x >> 15)) * 0x846CA68B)
        x = signed32((x ^ (x >> 17)) * 0x297A2D39)
        out.append(x ^ (x >> 16))
    return out


def reference_mix(x: int) -> int:
    x %= 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    x ^= x >> 31
    return x - 2**64 if x >= 2**63 else x


@pytest.mark.parametrize("count", [1, 3, 8, 33])  # ends that fill a vector register and ends that do not
def test_words_equal_the_scalar_rewrite(count):
    key = keys(7)
    assert words(key, count).tolist() == [reference_words(k, count) for k in key.tolist()]


def test_mix_equals_the_scalar_rewrite_and_the_published_first_output():
    x = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), 0x9E3779B97F4A7C15 - 2**64])
    expected = [reference_mix(value) for value in x.tolist()]
    assert mix(x).tolist() == expected
    assert expected[-1] % 2**64 == 0xE220A8397B1DCDAF  # splitmix64 from seed 0


def test_words_are_uniform_in_every_byte_and_from_draw_to_draw():
    x = words(keys(4000), 64).to(torch.int64)
    assert x.min() >= 0
    for shift in (0, 8, 16, 23):
        byte = (x >> shift) & 255
        pair = (byte[:, :-1] * 256 + byte[:, 1:]).flatten()
        assert chisquare(torch.bincount(byte.flatten(), minlength=256)).pvalue > LUCKY
        assert chisquare(torch.bincount(pair, minlength=65536)).pvalue > LUCKY


def test_neighbouring_samples_share_nothing():
    high = words(keys(60_000), 2).to(torch.int64) >> 25
    pair = (high[:-1] * 64 + high[1:]).flatten()
    assert chisquare(torch.bincount(pair, minlength=4096)).pvalue > LUCKY


@pytest.mark.parametrize("bound", [2, 3, 1000, 8191])
def test_below_is_uniform(bound):
    x = below(keys(2000), 200, bound)
    assert chisquare(torch.bincount(x.flatten(), minlength=bound)).pvalue > LUCKY
    assert len(torch.bincount(x.flatten())) == bound


def test_below_takes_a_bound_per_row():
    bounds = torch.tensor([[1], [5], [2**31]])
    x = below(keys(3), 4000, bounds)
    assert (x[0] == 0).all()
    assert sorted(set(x[1].tolist())) == [0, 1, 2, 3, 4]
    assert x[2].max() > 2**30


def test_domains_seeds_samples_and_forks_never_share_a_key():
    ids = torch.arange(40)
    parts = [fork(sample_keys(domain, range(50), 0, 100, CPU).flatten(), ids) for domain in ("a/train", "a/test")]
    assert len(torch.cat(parts).flatten().unique()) == 2 * 50 * 100 * 40


@pytest.mark.parametrize(("seeds", "start", "count"), [([], 0, 1), ([0], -1, 1), ([0], 0, 0)])
def test_an_empty_range_is_refused(seeds, start, count):
    with pytest.raises(ValueError, match="there must be seeds"):
        sample_keys("a", seeds, start, count, CPU)

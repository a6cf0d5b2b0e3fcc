"""Who may hold which sequence, and how a sample finds one of its split's own."""

import pytest
import torch

from mclab.tasks.splits import ATTEMPTS, ENOUGH, SPLITS, belongs, check_split, settle
from mclab.tasks.stream import fork, mix, sample_keys

CPU = torch.device("cpu")


def test_each_hash_belongs_to_one_split_with_the_shares_of_a_half_and_two_quarters():
    hashes = mix(torch.arange(100_000))
    held = torch.stack([belongs(hashes, split) for split in SPLITS])
    assert (held.sum(0) == 1).all()
    assert (held.float().mean(1) - torch.tensor([0.5, 0.25, 0.25])).abs().max() < 0.01


def test_an_unknown_split_is_named():
    with pytest.raises(ValueError, match="'dev' is none of train, valid, test"):
        check_split("dev")


def hashes_of(samples):
    def draw(rows, attempts):
        drawn = fork(samples[rows], attempts.unsqueeze(-1)).flatten()
        return attempts.expand(len(drawn)), drawn

    return draw


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_takes_the_first_attempt_that_fits(split):
    samples = sample_keys("test", [0], 0, 300, CPU).flatten()
    every = fork(samples, torch.arange(ATTEMPTS))
    wanted = [next(a for a in range(ATTEMPTS) if belongs(row, split)[a]) for row in every]
    for size in (300, 7, 1):  # how many attempts are made at once depends on the number of rows
        parts = [settle(hashes_of(part), len(part), 10, split, CPU) for part in samples.split(size)]
        attempts, hashes = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        assert attempts.tolist() == wanted
        assert torch.equal(hashes, every[torch.arange(300), attempts])


def test_a_large_space_takes_what_comes():
    samples = sample_keys("test", [0], 0, 300, CPU).flatten()
    attempts, hashes = settle(hashes_of(samples), 300, ENOUGH, "test", CPU)
    assert not attempts.any()
    assert 0 < belongs(hashes, "test").sum() < 300


def test_a_space_without_a_sequence_for_the_split_is_refused():
    def stuck(rows, attempts):
        return (torch.zeros_like(rows),)  # 0 belongs to train

    assert settle(stuck, 3, 1, "train", CPU)[0].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="for 3 samples of test no new sequence was found in 256 attempts"):
        settle(stuck, 3, 1, "test", CPU)

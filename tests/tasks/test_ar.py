"""What an ar sequence is, and how its parts are distributed."""

import pytest
import torch
from scipy.stats import chisquare

from mclab.config.task import ArTask
from mclab.tasks import Role, ar

LUCKY = 1e-3  # the data is fixed, so a test at this level passes always or never


def test_a_sequence_that_can_be_checked_by_hand():
    config = ArTask(length=12)
    batch = ar.batch(config, [0], "train", 0, 1, "cpu")
    assert batch.tokens.tolist() == [[[4, 16, 2, 13, 7, 15, 2, 13, 2, 13, 0, 2]]]
    assert batch.positions.tolist() == [[list(range(12))]]
    assert batch.answers.tolist() == [[[16, 2, 13, 7, 15, 2, 13, 2, 13, 0, 2, 13]]]
    k, v = Role.KEY, Role.VALUE
    assert ar.roles(config, batch).tolist() == [[[k, v] * 5 + [Role.MARK, Role.QUERY]]]
    assert config.slices == ("pairs=5",)


@pytest.mark.parametrize(("loss", "split"), [("answer", "train"), ("all", "valid"), ("all", "test")])
def test_the_answer_alone_is_scored(loss, split):
    batch = ar.batch(ArTask(loss=loss), [0], split, 0, 20, "cpu")
    assert batch.positions.flatten().tolist() == [39] * 20
    assert batch.answers.shape == (1, 20, 1)


def test_the_loss_changes_no_sequence():
    one, other = (ar.batch(ArTask(loss=loss), [0], "train", 0, 20, "cpu") for loss in ("all", "answer"))
    assert torch.equal(one.tokens, other.tokens)
    assert torch.equal(one.answers[..., -1:], other.answers)


@pytest.mark.parametrize("config", [ArTask(), ArTask(vocab=9, length=30), ArTask(vocab=4000, length=200)])
def test_keys_come_back_and_never_contradict(config):
    half, repeated = config.vocab // 2, 0
    for tokens in ar.batch(config, [0], "train", 0, 100, "cpu").tokens[0].tolist():
        keys, values = tokens[:-2:2], tokens[1:-2:2]
        assert len(set(zip(keys, values, strict=True))) == len(set(keys))
        assert all(1 <= key < half for key in keys)
        assert all(half <= value < config.vocab for value in values)
        assert tokens[-2] == 0
        assert tokens[-1] in keys
        repeated += len(keys) > len(set(keys))
    assert repeated > 50


def test_keys_values_and_queries_are_uniform():
    batch = ar.batch(ArTask(length=22), [0], "train", 0, 40_000, "cpu")
    tokens = batch.tokens[0]
    first, second = tokens[:, 0] - 1, tokens[:, 2] - 1
    assert chisquare(torch.bincount(first * 9 + second, minlength=81)).pvalue > LUCKY
    assert chisquare(torch.bincount(first * 10 + tokens[:, 1] - 10, minlength=90)).pvalue > LUCKY
    apart = first != second
    joint = (tokens[:, 1] - 10) * 10 + tokens[:, 3] - 10
    assert chisquare(torch.bincount(joint[apart], minlength=100)).pvalue > LUCKY
    assert chisquare(torch.bincount(tokens[:, -1] - 1, minlength=9)).pvalue > LUCKY


def test_a_query_asks_every_pair_alike_often():
    """With as many keys as here hardly any is drawn twice, so the pair can be told from its key."""
    tokens = ar.batch(ArTask(vocab=2**20, length=12), [0], "train", 0, 20_000, "cpu").tokens[0]
    place = (tokens[:, :-2:2] == tokens[:, -1:]).to(torch.int64).argmax(-1)
    assert chisquare(torch.bincount(place, minlength=5)).pvalue > LUCKY

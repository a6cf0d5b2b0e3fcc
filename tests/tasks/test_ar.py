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
    assert batch.tokens.tolist() == [[[6, 17, 2, 11, 5, 18, 5, 18, 7, 19, 0, 7]]]
    assert batch.positions.tolist() == [[list(range(12))]]
    assert batch.answers.tolist() == [[[17, 2, 11, 5, 18, 5, 18, 7, 19, 0, 7, 19]]]
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
def test_keys_come_back_and_are_told_apart_by_their_values(config):
    half, repeated = config.vocab // 2, 0
    for tokens in ar.batch(config, [0], "train", 0, 100, "cpu").tokens[0].tolist():
        keys, values = tokens[:-2:2], tokens[1:-2:2]
        assert len(set(zip(keys, values, strict=True))) == len(set(keys)) == len(set(values))
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
    joint = torch.bincount(((tokens[:, 1] - 10) * 10 + tokens[:, 3] - 10)[apart], minlength=100).view(10, 10)
    assert not joint.diagonal().any()
    assert chisquare(joint[~torch.eye(10, dtype=torch.bool)]).pvalue > LUCKY
    assert chisquare(torch.bincount(tokens[:, -1] - 1, minlength=9)).pvalue > LUCKY


def test_every_key_that_occurs_is_asked_alike_often_whatever_its_pairs():
    """Five pairs: whatever the key asked is, it occurs as often as any key of the sequence does."""
    tokens = ar.batch(ArTask(length=12), [0], "test", 0, 20_000, "cpu").tokens[0]
    often = torch.stack([(tokens[:, :-2:2] == key).sum(-1) for key in range(1, 10)], -1)
    asked = often.gather(-1, tokens[:, -1:] - 1).squeeze(-1)
    for shape in ((2, 1, 1, 1), (3, 1, 1), (2, 2, 1), (3, 2)):
        padded = torch.tensor([*shape, *[0] * (9 - len(shape))])
        rows = (often.sort(-1, descending=True).values == padded).all(-1)
        hits = torch.bincount(asked[rows], minlength=4).tolist()
        total, counts = rows.sum().item(), sorted(set(shape))
        assert total > 100
        expected = [total * shape.count(count) / len(shape) for count in counts]
        assert chisquare([hits[count] for count in counts], expected).pvalue > LUCKY

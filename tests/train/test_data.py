"""Training batches: which part of a mix a step is of, which samples it sees, and that a later start sees the same."""

from itertools import islice

import pytest
import torch

from mclab.config.run import RunConfig
from mclab.plan.plan import tokens
from mclab.tasks import TASKS
from mclab.train import train_pack
from mclab.train.data import TrainData, shares

CPU = torch.device("cpu")
MIX = [{"weight": 3}, {"length": 32}, {"length": 24, "pairs": 4, "weight": 2}]


def run_config(mix=MIX, **train):
    return RunConfig.model_validate({
        "task": {"vocab": 64, "length": 16, "pairs": [2, 4]},
        "model": {"dim": 8},
        "train": {"steps": 24, "batch": 4, "task": mix, **train},
        "eval": {"every": 12, "valid": 8, "test": 16},
    })  # fmt: skip


def batches(run, seeds=(0,), done=0):
    return list(TrainData(run, seeds, CPU).batches(done))


def lengths(made):
    return [batch.tokens.shape[-1] for batch in made]


def test_without_a_mix_step_n_sees_the_samples_of_the_stream():
    run = run_config(mix=[])
    stream = TASKS["mqar"].batch(run.task, [0, 3], "train", 0, 24 * 4, CPU)
    assert torch.equal(torch.cat([batch.tokens for batch in batches(run, (0, 3))], dim=1), stream.tokens)


def test_shares_are_exact_in_every_cycle_and_the_same_for_every_seed():
    run = run_config()
    made = lengths(batches(run))
    assert [made[at : at + 6].count(16) for at in range(0, 24, 6)] == [3] * 4
    assert [made[at : at + 6].count(24) for at in range(0, 24, 6)] == [2] * 4
    assert made == lengths(batches(run, (7, 8)))


@pytest.mark.parametrize("examples", [None, 24])
@pytest.mark.parametrize("done", [1, 6, 23])
@pytest.mark.parametrize("mix", [[], MIX], ids=["alone", "mix"])
def test_a_later_start_gives_the_same_batches(mix, done, examples):
    run = run_config(mix, examples=examples)
    for one, other in zip(batches(run)[done:], batches(run, done=done), strict=True):
        assert all(torch.equal(mine, its) for mine, its in zip(one, other, strict=True))


def test_how_many_steps_are_made_at_once_changes_nothing(monkeypatch):
    whole = batches(run_config(), (0, 1))
    monkeypatch.setattr("mclab.train.data.BLOCK", 8)
    for one, other in zip(whole, batches(run_config(), (0, 1)), strict=True):
        assert all(torch.equal(mine, its) for mine, its in zip(one, other, strict=True))


def test_a_part_sees_its_own_samples_in_a_row():
    run = run_config()
    second = [batch for batch in batches(run) if batch.tokens.shape[-1] == 24]
    task = run.mix[2].task
    alone = TASKS["mqar"].batch(task, [0], "train", 2 * 2**40, 8 * 4, CPU)
    assert torch.equal(torch.cat([batch.tokens for batch in second], dim=1), alone.tokens)


def test_parts_draw_sequences_of_their_own():
    """From one sample the same pairs would come at either length; a part has other samples, so it has other pairs."""
    run = run_config([{"length": 64, "pairs": 8}, {"length": 128, "pairs": 8}])
    made = batches(run)
    heads = [{tuple(row[:16].tolist()) for b in made[start::2] for row in b.tokens[0]} for start in (0, 1)]
    assert all(len(found) == 48 for found in heads)
    assert not heads[0] & heads[1]
    together = [TASKS["mqar"].batch(part.task, [0], "train", 0, 48, CPU).tokens[0, :, :16] for part in run.mix]
    assert torch.equal(*together), "the fault that samples of their own prevent"


def test_a_fixed_set_is_split_by_weight_and_recycled_part_by_part():
    run = run_config(examples=24, steps=48)
    made = batches(run)
    for length, size in ((16, 12), (32, 4), (24, 8)):
        own = torch.cat([b.fingerprints for b in made if b.tokens.shape[-1] == length], dim=1)[0]
        assert len(set(own.tolist())) == size
        assert torch.equal(own[:size], own[size : 2 * size])


def test_shares_of_a_fixed_set_add_up():
    assert shares(180_000, (5, 1, 1, 1, 1)) == [100_000, 20_000, 20_000, 20_000, 20_000]
    assert shares(100, (1, 1, 1)) == [33, 33, 34]
    assert shares(None, (1, 2)) == [None, None]
    assert shares(1, (1, 1)) == [1, 1]


def test_what_was_shown_is_counted_to_the_step():
    run = run_config()
    data = TrainData(run, [0, 1], CPU)
    list(islice(data.batches(), 6))
    assert data.tokens == 4 * (3 * 16 + 32 + 2 * 24)
    assert data.seen.shape == (2, 6 * 4)
    list(data.batches(done=20))
    assert data.tokens == tokens(run) == 4 * data.tokens // 4 == 4 * 4 * (3 * 16 + 32 + 2 * 24)
    assert data.seen.shape == (2, 24 * 4)


def test_tokens_of_a_plan_count_a_cycle_that_is_cut_short():
    run = run_config(steps=4)
    data = TrainData(run, [0], CPU)
    assert tokens(run) == 4 * sum(lengths(list(data.batches())))
    assert tokens(run_config(mix=[], steps=4)) == 4 * 4 * 16


def test_a_mix_trains_in_a_pack_as_alone():
    runs = [run_config(precision="fp64").model_copy(update={"seed": seed}) for seed in (0, 1)]
    for together, run in zip(train_pack(runs, device="cpu"), runs, strict=True):
        (alone,) = train_pack([run], device="cpu")
        assert together.curve[-1]["loss"] == pytest.approx(alone.curve[-1]["loss"], abs=1e-10)
        assert together.overlap == alone.overlap


def test_a_task_that_scores_more_in_training_than_on_test_trains():
    run = RunConfig.model_validate({
        "task": {"name": "ar", "length": 12, "loss": "all"},
        "model": {"dim": 8},
        "train": {"steps": 4, "batch": 4, "task": [{"length": 12}, {"length": 16}]},
        "eval": {"every": 2, "valid": 8, "test": 16, "task": {"length": 24}},
    })  # fmt: skip
    scored = {batch.answers.shape[-1] for batch in batches(run)}
    assert len(scored) == 2
    assert min(scored) > 1
    (outcome,) = train_pack([run], device="cpu")
    assert outcome.status == "done"
    assert len(outcome.test) == 3

"""Training from config to outcome: what is learned, what is measured, what repeats."""

import dataclasses
import json

import pytest
import torch

from mclab.config.outcome import ALL
from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.kernels.dispatch import using
from mclab.tasks import TASKS
from mclab.train import train_pack
from mclab.train.data import _ranges
from mclab.train.evaluate import EvalSet, loss_per_replica
from tests.tolerances import GOLDEN


def run_config(seed=0, mixer=None, **train):
    return RunConfig.model_validate(
        {
            "seed": seed,
            "task": {"vocab": 16, "length": 16, "pairs": [1, 2], "spread": "uniform"},
            "model": {"dim": 16, "mixer": {"segment": 4, **(mixer or {})}},
            "train": {"steps": 20, "batch": 16, **train},
            "eval": {"every": 10, "valid": 16, "test": 32},
        }
    )


def outcome(run, **options):
    return train_pack([run], device="cpu", **options)[0]


def science_of(result):
    """An outcome without what depends on the clock and the machine."""
    return dataclasses.replace(result, tokens_per_s=None, wall_s=None, provenance={})


def test_an_outcome_says_everything():
    run = run_config()
    result = outcome(run)
    assert result.status == "done"
    assert result.steps == 20
    assert set(result.valid) == set(result.test) == {ALL, "pairs=1", "pairs=2"}
    assert result.params == parameters(run)
    assert (result.state_fixed, result.state_cached) == state_floats(run)
    assert [look["step"] for look in result.curve] == [10, 20]
    assert {name: s.accuracy for name, s in result.valid.items()} == {
        name: s["accuracy"] for name, s in result.curve[-1]["valid"].items()
    }
    assert result.overlap is not None
    assert result.tokens_per_s > 0
    assert (result.provenance["kernels"], result.provenance["step"]) == ("linear: torch", "eager")
    assert json.dumps(dataclasses.asdict(result))


def test_says_why_what_was_asked_for_did_not_compute():
    with using("triton"):
        found = outcome(run_config(steps=1)).provenance["kernels"]
    assert found == "linear: torch (Triton needs a CUDA device, not cpu)"


def test_the_same_run_twice_is_the_same():
    assert science_of(outcome(run_config())) == science_of(outcome(run_config()))
    assert science_of(outcome(run_config())) != science_of(outcome(run_config(seed=1)))


def test_the_mean_over_slices_counts_every_slice_alike():
    result = outcome(run_config())
    assert result.test[ALL].accuracy == pytest.approx(
        (result.test["pairs=1"].accuracy + result.test["pairs=2"].accuracy) / 2
    )


def test_a_pack_gives_what_single_runs_give():
    runs = [run_config(seed, precision="fp64", lr=lr) for seed in (0, 1) for lr in (3e-3, 1e-2)]
    for together, run in zip(train_pack(runs, device="cpu"), runs, strict=True):
        alone = outcome(run)
        assert {k: s.accuracy for k, s in together.test.items()} == {k: s.accuracy for k, s in alone.test.items()}
        assert together.overlap == alone.overlap
        assert together.curve[-1]["loss"] == pytest.approx(alone.curve[-1]["loss"], abs=1e-10)


def test_a_diverged_run_says_where_and_its_mate_is_unharmed():
    good, bad = train_pack([run_config(), run_config(lr=1e30)], device="cpu")
    assert bad.status == "diverged"
    assert bad.steps == bad.diverged_step
    assert 1 <= bad.diverged_step <= 20
    assert bad.test == {}
    alone = outcome(run_config())
    assert good.status == "done"
    assert good.test[ALL].accuracy == pytest.approx(alone.test[ALL].accuracy, abs=0.02)


def test_training_ends_when_every_replica_has_diverged():
    result = outcome(run_config(lr=1e30, steps=2000))
    assert result.status == "diverged"
    assert result.curve == ()


def test_early_stop_on_the_worst_valid_slice():
    """0.01 is reached at the first look; the run stops there, and a run without `stop_at` does not."""
    stopped = outcome(run_config(stop_at=0.01, steps=40))
    assert stopped.steps < 40
    worst = min(s["accuracy"] for name, s in stopped.curve[-1]["valid"].items() if name != ALL)
    assert worst >= 0.01
    assert outcome(run_config(steps=40)).steps == 40


def test_a_stopped_replica_keeps_its_weights_while_its_mate_goes_on():
    runs = [run_config(stop_at=0.01, steps=40, precision="fp64"), run_config(steps=40, precision="fp64")]
    stopped, on = train_pack(runs, device="cpu")
    assert stopped.steps < on.steps == 40
    assert stopped.test == outcome(runs[0]).test


def test_a_small_run_learns_and_says_when():
    """Two pairs, 300 steps: attention answers nearly everything; chance is 1/8."""
    result = outcome(run_config(steps=300, batch=32, lr=2e-2))
    assert result.test[ALL].accuracy > 0.9
    if result.steps_to_99 is not None:
        reached = next(look for look in result.curve if look["step"] == result.steps_to_99)
        assert reached["valid"][ALL]["accuracy"] >= 0.99
        assert all(look["valid"][ALL]["accuracy"] < 0.99 for look in result.curve if look["step"] < result.steps_to_99)


def test_overlap_is_counted_against_what_training_saw():
    """With 2 recycled train examples almost nothing is seen; the count equals one made by hand from the streams."""
    run = run_config(steps=50, batch=64)
    task = TASKS["mqar"]
    seen = task.batch(run.task, [0], "train", 0, 50 * 64, "cpu").fingerprints
    test = EvalSet(run, [0], "test", run.eval.test, torch.device("cpu")).fingerprints
    by_hand = sum(f in set(seen[0].tolist()) for f in test[0].tolist()) / test.shape[1]
    assert outcome(run).overlap == by_hand


def test_examples_recycle_a_fixed_set():
    assert _ranges(0, 10, None) == [(0, 10)]
    assert _ranges(6, 10, 8) == [(6, 2), (0, 8)]
    assert _ranges(8, 3, 8) == [(0, 3)]
    assert _ranges(0, 7, 3) == [(0, 3), (0, 3), (0, 1)]
    assert science_of(outcome(run_config(examples=16))) != science_of(outcome(run_config()))


def test_loss_is_normalised_per_replica():
    """Replica 0 has one scored position, replica 1 has three: each loss is a mean over its own."""
    logits = torch.zeros(2, 1, 3, 4)
    logits[0, 0, 0, 1] = 2.0
    answers = torch.tensor([[[1, -100, -100]], [[0, 1, 2]]])
    expected = torch.tensor([torch.log(torch.tensor(3.0 + torch.e**2)) - 2.0, torch.log(torch.tensor(4.0))])
    torch.testing.assert_close(loss_per_replica(logits, answers), expected)


def test_progress_is_told_at_the_start_and_at_every_look_and_in_order():
    told = []
    outcome(run_config(), progress=lambda step, steps: told.append((step, steps)))
    assert {(0, 20), (10, 20), (20, 20)} <= set(told)  # and once a second, on a machine that is so slow
    assert told == sorted(set(told))


def test_bf16_trains():
    result = outcome(run_config(precision="bf16"))
    assert result.status == "done"
    assert result.curve[-1]["loss"] < result.curve[0]["loss"]


GOLDEN_LOSSES = {
    "grm": ({}, [2.8523, 2.3678]),
    "ssc": ({"aggregate": "ssc", "init": "checkpoint", "route": "hard"}, [2.68888, 2.15184]),
    "attention": ({"name": "attention"}, [2.64661, 2.06423]),
}


@pytest.mark.parametrize("name", GOLDEN_LOSSES)
def test_golden_losses(name):
    """A refactor leaves these unchanged. They move only with a formula or a default, and then `SCIENCE` is bumped."""
    mixer, expected = GOLDEN_LOSSES[name]
    config = run_config().model_dump()
    config["model"]["mixer"] = {"segment": 4, **mixer} if "name" not in mixer else mixer
    result = outcome(RunConfig.model_validate(config))
    assert [look["loss"] for look in result.curve] == pytest.approx(expected, rel=GOLDEN)

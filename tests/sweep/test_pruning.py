"""Median pruning: the rule, that it stops a run, and that a stopped run is final."""

import random
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from mclab.config.outcome import ALL, Score
from mclab.config.run import RunConfig
from mclab.sweep.pruning import Judge, bars, evaluations, medians
from mclab.train import train_pack
from tests.commands import fine, records
from tests.sweep.bench import BASE, FakeTraining, frozen, journal, space_file, trials


@pytest.mark.parametrize("metric", ["valid.accuracy", "valid.loss"])
def test_the_rule_is_optunas(metric: str) -> None:
    draw = random.Random(1)
    direction = "maximize" if metric == "valid.accuracy" else "minimize"
    outcomes = set()
    for count in range(40):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(direction=direction, pruner=optuna.pruners.MedianPruner())
        curves = [{step: draw.random() for step in (2, 4, 6)} for _ in range(count % 9)]
        for curve in curves:
            study.add_trial(create_trial(value=0.0, intermediate_values=curve))
        judge, trial = Judge(metric, medians(curves), 1), study.ask()
        for step in (2, 4, 6):
            value = draw.random()
            trial.report(value, step)
            (goes_on,) = judge(step, [{ALL: Score(value, value)}])
            assert goes_on is not trial.should_prune()
            outcomes.add(goes_on)
    assert outcomes == {True, False}


def test_a_look_that_is_no_number_stops_nothing() -> None:
    """optuna-examples#40."""
    nan = float("nan")
    assert medians([{1: nan}, {1: 0.5}, {1: nan}, {1: 0.7}, {1: 0.9}]) == {1: 0.7}
    assert medians([{1: nan}] * 5) == {}
    judge = Judge("valid.loss", {1: 0.7, 2: 0.7}, 2)
    assert judge(1, [{ALL: Score(0, nan)}, {ALL: Score(0, 0.9)}]) == [True, False]
    assert judge(2, [{ALL: Score(0, 0.8)}, {ALL: Score(0, nan)}]) == [False, False]


def test_nobody_is_stopped_before_most_have_begun_to_recall() -> None:
    """Learning is a step after a plateau: what is behind on the plateau is behind by chance."""
    curves = [{100: 0.12 + n / 100, 200: 0.13, 300: 0.9} for n in range(6)]
    assert bars(curves, [300] * 4 + [None] * 2) == {300: 0.9}
    assert bars(curves, [200] * 4 + [None] * 2) == {200: 0.13, 300: 0.9}
    assert bars(curves, [100] * 3 + [None] * 3) == {}  # half of them are not most
    assert bars(curves[:4], [100] * 4) == {}


def test_looks_are_means_over_the_seeds() -> None:
    first = [{"step": 1, "valid": {ALL: {"accuracy": 0.2}}}, {"step": 2, "valid": {ALL: {"accuracy": 0.4}}}]
    second = [{"step": 1, "valid": {ALL: {"accuracy": 0.4}}}]
    assert evaluations([first, second], "valid.accuracy") == {1: pytest.approx(0.3)}
    assert evaluations([], "valid.accuracy") == {}


def run_config(seed: int = 0, **train: object) -> RunConfig:
    return RunConfig.model_validate(
        {
            "seed": seed,
            "task": {"vocab": 16, "length": 16, "pairs": [1, 2]},
            "model": {"dim": 8, "layers": 1, "mixer": {"segment": 4}},
            "train": {"steps": 6, "batch": 8, **train},
            "eval": {"every": 2, "valid": 8, "test": 16},
        }
    )


def test_training_stops_whom_it_is_told_to_and_its_mate_is_unharmed() -> None:
    seen: list[int] = []

    def look(step, scores):
        seen.append(step)
        assert [set(score) for score in scores] == [{ALL, "pairs=1", "pairs=2"}] * 2
        return [True, step < 4]

    pack = [run_config(0), run_config(1)]
    kept, stopped = train_pack(pack, device="cpu", on_evaluation=look)
    (alone,) = train_pack(pack[:1], device="cpu")
    assert seen == [2, 4]  # nobody is asked at the last look
    assert (kept.status, kept.test, kept.valid) == ("done", alone.test, alone.valid)
    assert (stopped.status, stopped.steps, stopped.test, stopped.diverged_step) == ("pruned", 4, {}, None)
    assert [each["step"] for each in stopped.curve] == [2, 4]
    (early,) = train_pack(pack[1:], device="cpu", on_evaluation=lambda step, scores: [False])
    assert (early.steps, early.tokens_per_s is not None) == (2, True)


def test_a_stopped_run_is_stopped_after_a_resume(tmp_path: Path) -> None:
    from mclab.config.options import Keep

    def interrupted(step: int, steps: int) -> None:
        if step == 4:
            raise KeyboardInterrupt

    pack, keep = [run_config(seed, checkpoint_every=3) for seed in (0, 1)], Keep(tmp_path / "c")
    with pytest.raises(KeyboardInterrupt):
        train_pack(
            pack, device="cpu", keep=keep, progress=interrupted, on_evaluation=lambda step, scores: [True, False]
        )
    kept, stopped = train_pack(pack, device="cpu", keep=keep)
    assert (kept.provenance["resumed_at"], kept.status) == (3, "done")
    assert (stopped.status, stopped.steps) == ("pruned", 2)


def test_a_search_really_stops_what_is_behind(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With training for real: the seventh trial learns nothing and is stopped at its first look. So few steps teach no
    recall, so whatever is right more often than never counts as that."""
    monkeypatch.setattr("mclab.train.loop.without_recall", lambda run, seed: {ALL: {"nothing": 0.0}})
    text = f"{BASE.replace('steps: 4', 'steps: 20').replace('every: 2', 'every: 10').replace('valid: 8', 'valid: 64')}"
    rates = "[0.03, 0.031, 0.032, 0.033, 0.034, 0.035, 1.0e-7]"
    path = space_file(
        here,
        f"{text}\nspace:\n  train.lr: {rates}\nsampler: grid\npruner: median\n".replace(
            "batch: 8", "batch: 8, lr: 0.03"
        ),
    )
    fine("sweep", "--space", path, "--trials", 7, "--out", "o", "--workers", 1)
    found = trials(here / "o")
    behind = found[-1]
    assert (behind["params"]["train.lr"], behind["status"], behind["values"]) == (1e-7, "pruned", None)
    record = records(here / "o")[behind["run_ids"][0]]
    assert (record["status"], record["steps"] < 20) == ("pruned", True)
    last = frozen(journal(here / "o"))[-1]
    assert (last.state, max(last.intermediate_values)) == (TrialState.PRUNED, record["steps"])
    again = fine("sweep", "--space", path, "--trials", 7, "--out", "o", "--workers", 1, "--study", "again")
    assert "7 of them answered from stored results" in again.err  # final: nothing is trained again


def test_a_trial_that_repeats_a_stopped_one_is_stopped(here: Path, training: FakeTraining) -> None:
    text = f"{BASE}\nspace:\n  train.lr: [0.05, 0.06, 0.07, 0.08, 0.09, 0.001]\nsampler: random\npruner: median\n"
    training.chance = 0.0
    fine("sweep", "--space", space_file(here, text), "--trials", 25, "--out", "o", "--workers", 1)
    stopped = [trial for trial in trials(here / "o") if trial["status"] == "pruned"]
    first = frozen(journal(here / "o"))[stopped[0]["number"]]
    assert first.user_attrs["valid.accuracy"] == pytest.approx(max(first.intermediate_values.values()))
    assert first.user_attrs["state_floats"] == 80.0
    assert len({tuple(trial["run_ids"]) for trial in stopped}) < len(stopped)
    assert len(training.asked) == len(set(training.asked))


def test_a_resumed_run_is_judged_by_the_looks_before_as_well(tmp_path: Path) -> None:
    """The second one's best look came before its checkpoint: without it the run would be behind at the next."""
    from mclab.config.options import Keep

    def interrupted(step: int, steps: int) -> None:
        if step == 4:
            raise KeyboardInterrupt

    pack = [run_config(0, checkpoint_every=3, lr=1e-4), run_config(1, checkpoint_every=3, lr=1e-4)]
    first, second = ([look["valid"][ALL]["loss"] for look in each.curve] for each in train_pack(pack, device="cpu"))
    assert second[0] < min(second[1], *first)
    bars = {4: second[0]}

    def judged(folder: Path | None, progress: Callable[[int, int], None] | None = None) -> list[tuple[str, int]]:
        look = Judge("valid.loss", bars, 2)
        found = train_pack(pack, device="cpu", keep=Keep(folder), progress=progress, on_evaluation=look)
        return [(each.status, each.steps) for each in found]

    whole = judged(None)
    with pytest.raises(KeyboardInterrupt):
        judged(tmp_path / "c", interrupted)
    assert judged(tmp_path / "c") == whole == [("pruned", 4), ("done", 6)]

"""From a plan to a full store: nothing twice, nothing lost, one failure does not take the rest."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from mclab.runner import Ahead, Progress, Start, Summary, execute
from mclab.runner.estimate import seconds
from mclab.runner.execute import ALONE
from mclab.runner.pending import PendingRuns
from mclab.store import Store
from mclab.workers import open_pool
from tests.stored import done

GATES = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..2"}
RATES = {"over": {"train.lr": [0.001, 0.01]}, "by": "valid.accuracy", "seeds": 2}
SELECTED = {**GATES, "select": RATES, "seeds": "0..4"}


def outcome_of(run: RunConfig) -> Outcome:
    """Better with the lower learning rate in one cell, with the higher in the other."""
    gated = getattr(run.model.mixer, "gate", None) == "context"
    accuracy = 0.9 if gated == (run.train.lr == 0.001) else 0.4
    return done(run, accuracy, 1.0, steps=run.train.steps, curve=({"step": 1},))


class Trainer:
    """A training function that notes what it trains and lets some runs fail."""

    def __init__(self, fate: Callable[[Sequence[RunConfig]], object] = lambda runs: None) -> None:
        self.packs: list[tuple[RunConfig, ...]] = []
        self.fate = fate

    def __call__(
        self, runs: Sequence[RunConfig], *, device: str, progress: Any = None, keep: Any = None
    ) -> list[Outcome]:
        self.packs.append(tuple(runs))
        fate = self.fate(runs)
        if isinstance(fate, BaseException):
            raise fate
        if progress:
            progress(1, 2)
        return [fate if isinstance(fate, Outcome) else outcome_of(run) for run in runs]

    @property
    def runs(self) -> list[RunConfig]:
        return [run for pack in self.packs for run in pack]


def run(plan: Plan, path: Path, train: Any, options: RunOptions = ALONE, **ears: Any) -> Summary:
    with Store(path) as store:
        return execute(plan, store, options, train=train, **ears)


def records(path: Path) -> dict[str, dict[str, Any]]:
    return {file.stem: json.loads(file.read_text()) for file in (path / "records").glob("[!.]*.json")}


def for_seed(seed: int, fate: object) -> Callable[[Sequence[RunConfig]], object]:
    return lambda runs: fate if any(run.seed == seed for run in runs) else None


# ---- what runs ----


def test_every_run_once_in_the_plans_order_and_nothing_the_second_time(tmp_path: Path) -> None:
    plan, train, again = plan_from(GATES, "g"), Trainer(), Trainer()
    first = run(plan, tmp_path, train)
    assert train.runs == list(plan.first_runs())
    assert (first.ran, first.stored, first.skipped, first.missing) == ({"done": 6}, {"done": 6}, 0, 0)
    assert first.clean
    assert not first.interrupted
    second = run(plan, tmp_path, again)
    assert again.packs == []
    assert (second.ran, second.skipped) == ({}, 6)
    assert second.clean
    more = plan_from({**GATES, "seeds": "0..3"}, "g")
    assert run(more, tmp_path, again).skipped == 6
    assert [each.seed for each in again.runs] == [3, 3]


def test_equal_cells_share_their_runs(tmp_path: Path) -> None:
    same = {"changes": {"a": {}, "b": {"train.lr": 0.001}, "c": {"train.lr": 0.001, "train.steps": 600}}}
    train = Trainer()
    run(plan_from(same, "g"), tmp_path, train)
    assert len(train.runs) == 2


def test_only_winners_get_the_other_seeds(tmp_path: Path) -> None:
    train = Trainer()
    summary = run(plan_from(SELECTED, "g"), tmp_path, train)
    assert len(train.runs) == 2 * 2 * 2 + 2 * 3
    late = [(each.model.mixer.gate, each.train.lr) for each in train.runs if each.seed >= 2]
    assert Counter(late) == {("context", 0.001): 3, ("input", 0.01): 3}
    assert summary.clean
    assert run(plan_from(SELECTED, "g"), tmp_path, train).skipped == 14


def test_a_cell_goes_on_while_others_still_choose(tmp_path: Path) -> None:
    plan = plan_from(SELECTED, "g")
    with Store(tmp_path) as store:
        needs = PendingRuns(plan, store.lookup, retry_failed=False)
        first = needs.all()
        assert (len(first), needs.given, needs.expected) == (8, 8, 6)
        new = []
        for each in first[:4]:
            assert new == []
            store.put(each, outcome_of(each))
            new = needs.done_with(each)
        assert [(each.seed, each.train.lr) for each in new] == [(2, 0.001), (3, 0.001), (4, 0.001)]
        assert (needs.given, needs.expected) == (11, 3)
        assert needs.all() == []


# ---- packs ----


# ---- what fails ----


def test_a_pack_that_does_not_fit_is_split_until_it_does(tmp_path: Path) -> None:
    said: list[str] = []
    train = Trainer(lambda runs: MemoryError("8 GiB") if len(runs) > 2 or 4 in [r.seed for r in runs] else None)
    plan = plan_from({"seeds": "0..6"}, "g")
    summary = run(plan, tmp_path, train, replace(ALONE, pack=7), echo=said.append)
    assert [len(pack) for pack in train.packs] == [7, 3, 4, 1, 2, 2, 2, 1, 1]
    assert summary.ran == {"done": 6, "oom": 1}
    assert not summary.clean
    assert said[0] == "7 runs together do not fit into memory; 3 and 4 of them are trained one after the other"
    assert ", seed 4 (run " in said[-1]
    assert "out of memory: MemoryError: 8 GiB (test_execute.py:" in said[-1]


def test_a_failure_is_kept_with_its_reason_and_runs_again_only_when_asked(tmp_path: Path) -> None:
    plan, said = plan_from(GATES, "g"), []
    broken = Trainer(for_seed(1, ValueError("no\nway")))
    summary = run(plan, tmp_path, broken, echo=said.append)
    assert summary.ran == {"done": 4, "failed": 2}
    error = next(each["error"] for each in records(tmp_path).values() if each["status"] == "failed")
    assert error.startswith("ValueError: no way (test_execute.py:")
    assert len(said) == 2
    assert "\n" not in said[0]
    mended = Trainer()
    assert run(plan, tmp_path, mended).skipped == 6
    assert mended.packs == []
    assert run(plan, tmp_path, mended, replace(ALONE, retry_failed=True)).ran == {"done": 2}
    assert [each.seed for each in mended.runs] == [1, 1]
    assert {each["status"] for each in records(tmp_path).values()} == {"done"}


def test_all_failed_runs_run_again_and_once(tmp_path: Path) -> None:
    plan, broken = plan_from(GATES, "g"), Trainer(lambda runs: RuntimeError("x"))
    assert run(plan, tmp_path, broken).ran == {"failed": 6}
    assert run(plan, tmp_path, broken, replace(ALONE, retry_failed=True)).ran == {"failed": 6}
    assert len(broken.runs) == 12


def test_diverged_is_final(tmp_path: Path) -> None:
    said: list[str] = []
    plan, train = plan_from(GATES, "g"), Trainer(for_seed(2, Outcome("diverged", steps=7, diverged_step=7)))
    summary = run(plan, tmp_path, train, echo=said.append)
    assert summary.ran == {"done": 4, "diverged": 2}
    assert not summary.clean
    assert said[0].endswith("diverged at step 7")
    assert run(plan, tmp_path, train, replace(ALONE, retry_failed=True)).ran == {}


def test_what_there_is_to_do_is_told_once(tmp_path: Path) -> None:
    plan, starts = plan_from(SELECTED, "g"), list[Start]()
    run(plan, tmp_path, Trainer(), begin=starts.append)
    (start,) = starts
    assert (start.runs, start.processes) == (14, 1)
    assert start.time is not None
    assert start.time.low < 14 / 8 * seconds(plan.first_runs()) < start.time.high
    run(plan, tmp_path, Trainer(), begin=starts.append)
    assert starts == [start]
    run(plan, tmp_path / "other", Trainer(), replace(ALONE, device="cuda"), begin=starts.append)
    assert starts[1].time is None


def test_the_next_command_goes_by_the_times_of_stored_runs(tmp_path: Path) -> None:
    """Each takes 1,000 s, far beyond what their configs alone let one expect."""
    starts, slow = list[Start](), Trainer(lambda runs: replace(outcome_of(runs[0]), steps=600, wall_s=1000.0))
    run(plan_from({"seeds": "0..3"}, "g"), tmp_path, slow)
    run(plan_from({"seeds": "0..5"}, "g"), tmp_path, Trainer(), begin=starts.append)
    span = starts[0].time
    assert span is not None
    assert (span.runs, starts[0].runs) == (4, 2)
    assert 1300 < span.low < 2000 < span.high


def test_until_the_first_run_begins_workers_are_starting_and_the_time_is_what_was_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers are this process, for speed; what is told is what two would make of it."""
    monkeypatch.setattr(sys.modules["mclab.runner.execute"], "open_pool", partial(here_alone, open_pool))
    seen: list[tuple[str, Ahead | None]] = []
    run(
        plan_from(GATES, "g"),
        tmp_path,
        Trainer(),
        replace(ALONE, workers=2),
        progress=lambda now: seen.append((now.stage(), now.ahead())),
    )
    assert [stage for stage, _ in seen] == ["starting 2 workers"] * 2 + [""] * 6
    first, last = seen[0][1], seen[-1][1]
    assert first is not None
    assert first.least is not None
    assert 2 < first.least < first.seconds
    assert last is not None
    assert last.least is None


def here_alone(opened: Callable[..., Any], options: RunOptions, workers: int, **more: Any) -> Any:
    return opened(options, 1, **more)


def test_fail_fast_and_max_failures(tmp_path: Path) -> None:
    plan = plan_from({"seeds": "0..7"}, "g")
    for options, bad, ran in (({"fail_fast": True}, 1, 2), ({"max_failures": 3}, 3, 6), ({"max_failures": 9}, 4, 8)):
        train = Trainer(lambda runs: Outcome("diverged") if runs[0].seed % 4 == 1 else odd(runs))
        summary = run(plan, tmp_path / str(bad), train, replace(ALONE, **options))
        assert summary.ran.total() == ran
        assert summary.ran.total() - summary.ran["done"] == bad
        assert summary.missing == 8 - ran
        told = {1: "stopped after 1 failed run (--fail-fast)", 3: "stopped after 3 failed runs (--max-failures 3)"}.get(
            bad
        )
        assert summary.stopped == (told if ran < 8 else None)
        assert len(records(tmp_path / str(bad))) == ran


def odd(runs: Sequence[RunConfig]) -> object:
    return ValueError("odd") if runs[0].seed % 2 else None


def test_a_failed_candidate_keeps_its_cell_from_choosing_until_it_was_run_again(tmp_path: Path) -> None:
    plan = plan_from(SELECTED, "g")
    broken = Trainer(lambda runs: MemoryError() if (runs[0].train.lr, runs[0].seed) == (0.01, 1) else None)
    summary = run(plan, tmp_path, broken)
    assert summary.ran == {"done": 6, "oom": 2}
    assert not summary.missing
    assert not summary.clean
    again = run(plan, tmp_path, Trainer(), replace(ALONE, retry_failed=True))
    assert (again.ran, again.skipped) == ({"done": 8}, 6)
    assert again.clean


# ---- what the caller sees ----


def test_progress(tmp_path: Path) -> None:
    seen: list[Progress] = []
    run(plan_from(SELECTED, "g"), tmp_path, Trainer(), progress=seen.append)
    assert seen[0] == Progress(0, 14)
    assert seen[1] == Progress(0, 14, 1, 2)
    assert seen[-1] == Progress(14, 14)
    assert {event.total for event in seen} == {14}


def test_the_real_training(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    base = {
        "task": {"vocab": 16, "length": 16, "pairs": 2},
        "model": {"dim": 8, "layers": 1},
        "train": {"steps": 2, "batch": 4},
        "eval": {"valid": 4, "test": 4},
    }
    plan = plan_from({"base": base, "seeds": "0..1"}, "g")
    summary = run(plan, tmp_path, None, replace(ALONE, pack=2))
    assert summary.ran == {"done": 2}, records(tmp_path)
    assert all(0 <= each["test"]["pairs=2"]["accuracy"] <= 1 for each in records(tmp_path).values())
    assert run(plan, tmp_path, None).skipped == 2


def test_importing_the_runner_loads_nothing_heavy() -> None:
    code = "import sys, mclab.runner; print(sorted({'torch', 'dask', 'polars', 'distributed'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

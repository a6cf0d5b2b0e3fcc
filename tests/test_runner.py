"""From a plan to a full store: nothing twice, nothing lost, one failure does not take the rest."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig, run_id, shape_key
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from mclab.runner import Progress, Start, Summary, execute
from mclab.runner.estimate import seconds
from mclab.runner.needs import Needs
from mclab.runner.packing import cost, packs_of
from mclab.store import Store, StoreError

GATES = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..2"}
RATES = {"over": {"train.lr": [0.001, 0.01]}, "by": "valid.accuracy", "seeds": 2}
SELECTED = {**GATES, "select": RATES, "seeds": "0..4"}


def outcome_of(run: RunConfig) -> Outcome:
    """Better with the lower learning rate in one cell, with the higher in the other."""
    gated = getattr(run.model.mixer, "gate", None) == "context"
    score = Score(0.9 if gated == (run.train.lr == 0.001) else 0.4, 1.0)
    return Outcome("done", steps=run.train.steps, valid={ALL: score}, test={ALL: score}, curve=({"step": 1},))


class Trainer:
    """A training function that notes what it trains and lets some runs fail."""

    def __init__(self, fate: Callable[[Sequence[RunConfig]], object] = lambda runs: None) -> None:
        self.packs: list[tuple[RunConfig, ...]] = []
        self.fate = fate

    def __call__(self, runs: Sequence[RunConfig], *, device: str, progress: Any = None) -> list[Outcome]:
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


def run(plan: Plan, path: Path, train: Any, **options: Any) -> Summary:
    with Store(path) as store:
        return execute(plan, store, train=train, **options)


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
        needs = Needs(plan, store.lookup, retry_failed=False)
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


def test_packs_mix_cells_of_one_shape_and_no_others(tmp_path: Path) -> None:
    grid = {"grid": {"train.lr": [0.001, 0.01], "model.dim": [16, 32]}, "seeds": "0..2"}
    train = Trainer()
    run(plan_from(grid, "g"), tmp_path, train, pack=4)
    assert [len(pack) for pack in train.packs] == [4, 2, 4, 2]
    assert all(len({shape_key(each) for each in pack}) == 1 for pack in train.packs)
    assert len({each.train.lr for each in train.packs[0]}) == 2
    assert len(records(tmp_path)) == 12


def test_automatic_packs() -> None:
    runs = [RunConfig(seed=seed) for seed in range(40)]
    sizes = partial(packs_of, runs, "auto")
    assert {len(pack) for pack in sizes(device="cpu", workers=1)} == {1}
    assert [len(pack) for pack in sizes(device="cuda", workers=1)] == [16, 16, 8]
    assert [len(pack) for pack in sizes(device="cuda", workers=8)] == [5] * 8
    for wrong in ("all", 0, True, 2.0):
        with pytest.raises(ValueError, match="pack: needs auto or a whole number from 1"):
            packs_of(runs, wrong, device="cpu", workers=1)


def test_the_dearest_pack_starts_first() -> None:
    small, large = RunConfig(), RunConfig.model_validate({"model": {"dim": 64}})
    longer = RunConfig.model_validate({"train": {"steps": 6000}})
    assert cost((small,)) < cost((large,))
    assert cost((small,)) < cost((longer,))
    assert cost((small, small)) == 2 * cost((small,))


# ---- what fails ----


def test_a_pack_that_does_not_fit_is_split_until_it_does(tmp_path: Path) -> None:
    said: list[str] = []
    train = Trainer(lambda runs: MemoryError("8 GiB") if len(runs) > 2 or 4 in [r.seed for r in runs] else None)
    plan = plan_from({"seeds": "0..6"}, "g")
    summary = run(plan, tmp_path, train, pack=7, echo=said.append)
    assert [len(pack) for pack in train.packs] == [7, 3, 4, 1, 2, 2, 2, 1, 1]
    assert summary.ran == {"done": 6, "oom": 1}
    assert not summary.clean
    assert said[0] == "7 runs together do not fit into memory: training 3 and 4"
    assert ", seed 4 (run " in said[-1]
    assert "out of memory: MemoryError: 8 GiB (test_runner.py:" in said[-1]


def test_a_failure_is_kept_with_its_reason_and_runs_again_only_when_asked(tmp_path: Path) -> None:
    plan, said = plan_from(GATES, "g"), []
    broken = Trainer(for_seed(1, ValueError("no\nway")))
    summary = run(plan, tmp_path, broken, echo=said.append)
    assert summary.ran == {"done": 4, "failed": 2}
    error = next(each["error"] for each in records(tmp_path).values() if each["status"] == "failed")
    assert error.startswith("ValueError: no way (test_runner.py:")
    assert len(said) == 2
    assert "\n" not in said[0]
    mended = Trainer()
    assert run(plan, tmp_path, mended).skipped == 6
    assert mended.packs == []
    assert run(plan, tmp_path, mended, retry_failed=True).ran == {"done": 2}
    assert [each.seed for each in mended.runs] == [1, 1]
    assert {each["status"] for each in records(tmp_path).values()} == {"done"}


def test_all_failed_runs_run_again_and_once(tmp_path: Path) -> None:
    plan, broken = plan_from(GATES, "g"), Trainer(lambda runs: RuntimeError("x"))
    assert run(plan, tmp_path, broken).ran == {"failed": 6}
    assert run(plan, tmp_path, broken, retry_failed=True).ran == {"failed": 6}
    assert len(broken.runs) == 12


def test_diverged_is_final(tmp_path: Path) -> None:
    said: list[str] = []
    plan, train = plan_from(GATES, "g"), Trainer(for_seed(2, Outcome("diverged", steps=7, diverged_step=7)))
    summary = run(plan, tmp_path, train, echo=said.append)
    assert summary.ran == {"done": 4, "diverged": 2}
    assert not summary.clean
    assert said[0].endswith("diverged at step 7")
    assert run(plan, tmp_path, train, retry_failed=True).ran == {}


def test_what_there_is_to_do_is_told_once(tmp_path: Path) -> None:
    plan, starts = plan_from(SELECTED, "g"), list[Start]()
    run(plan, tmp_path, Trainer(), begin=starts.append)
    (start,) = starts
    assert (start.runs, start.processes) == (14, 1)
    assert start.seconds == pytest.approx(14 / 8 * seconds(plan.first_runs()))
    run(plan, tmp_path, Trainer(), begin=starts.append)
    assert starts == [start]
    run(plan, tmp_path / "other", Trainer(), begin=starts.append, device="cuda")
    assert starts[1].seconds is None


def test_fail_fast_and_max_failures(tmp_path: Path) -> None:
    plan = plan_from({"seeds": "0..7"}, "g")
    for options, bad, ran in (({"fail_fast": True}, 1, 2), ({"max_failures": 3}, 3, 6), ({"max_failures": 9}, 4, 8)):
        train = Trainer(lambda runs: Outcome("diverged") if runs[0].seed % 4 == 1 else odd(runs))
        summary = run(plan, tmp_path / str(bad), train, **options)
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
    again = run(plan, tmp_path, Trainer(), retry_failed=True)
    assert (again.ran, again.skipped) == ({"done": 8}, 6)
    assert again.clean


# ---- what interrupts ----


def test_an_interrupt_loses_the_running_pack_alone(tmp_path: Path) -> None:
    plan, train = plan_from(GATES, "g"), Trainer()
    train.fate = lambda runs: KeyboardInterrupt() if len(train.packs) == 4 else None
    summary = run(plan, tmp_path, train)
    assert summary.interrupted
    assert (summary.ran, summary.missing, summary.stopped) == ({"done": 3}, 3, "interrupted")
    again = Trainer()
    assert run(plan, tmp_path, again).skipped == 3
    assert again.runs == train.runs[3:] + list(plan.first_runs())[4:]


def test_a_full_disk_stops_it_and_the_rest_runs_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, real, calls = plan_from(GATES, "g"), os.replace, 0

    def full(*paths: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise OSError(errno.ENOSPC, "full")
        real(*paths)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="the disk is full"):
        run(plan, tmp_path, Trainer())
    monkeypatch.undo()
    assert len(records(tmp_path)) == 2
    assert run(plan, tmp_path, Trainer()).skipped == 2
    assert len(records(tmp_path)) == 6


def test_deleted_and_damaged_records_run_again(tmp_path: Path) -> None:
    plan, train = plan_from(GATES, "g"), Trainer()
    run(plan, tmp_path, Trainer())
    one, two = (tmp_path / "records" / f"{run_id(each)}.json" for each in list(plan.first_runs())[:2])
    one.unlink()
    two.write_bytes(two.read_bytes()[:100])
    with Store(tmp_path, say=lambda line: None) as store:
        assert execute(plan, store, train=train).skipped == 4
    assert train.runs == list(plan.first_runs())[:2]


SCRIPT = """
import os, signal, sys
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Store
from test_runner import GRID, noting

with Store(sys.argv[1]) as store:
    execute(plan_from(GRID, "g"), store, workers=int(sys.argv[2]), train=noting(sys.argv[3], sys.argv[1]))
"""
GRID = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..6"}


def noting(notes: Path | str, deadly_to: str | None = None) -> Any:
    return partial(noted_training, notes=str(notes), deadly_to=deadly_to)


def noted_training(
    runs: Sequence[RunConfig], *, device: str, progress: Any = None, notes: str, deadly_to: str | None
) -> list[Outcome]:
    """Notes each run in a file. Seed 5 kills the owner of the folder, once something is stored there."""
    with open(notes, "a") as file:
        file.writelines(f"{run_id(run)}\n" for run in runs)
    if deadly_to and runs[0].seed == 5:
        while not any(Path(deadly_to, "records").glob("[!.]*.json")):
            time.sleep(0.01)
        os.kill(os.getppid() if "distributed" in sys.modules else os.getpid(), signal.SIGKILL)
        signal.pause()
    return [outcome_of(run) for run in runs]


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_the_middle_and_started_again(tmp_path: Path, workers: int) -> None:
    out, notes, plan = tmp_path / "out", tmp_path / "notes", plan_from(GRID, "g")
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", SCRIPT, str(out), str(workers), str(notes)]
    # Its workers hold the pipe too: this returns when the last of them is gone.
    done = subprocess.run(command, env=here, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    stored = set(records(out))
    assert 0 < len(stored) < 14
    with Store(out, say=pytest.fail) as store:
        summary = execute(plan, store, workers=workers, train=noting(notes))
    assert summary.ran.total() == 14 - len(stored)
    assert summary.clean
    assert set(records(out)) == {run_id(each) for each in plan.first_runs()}
    assert len(list((out / "curves").iterdir())) == 14
    calls = Counter(notes.read_text().split())
    assert {calls[name] for name in stored} == {1}
    assert set(calls.values()) == {1, 2}
    assert not list(out.rglob(".*"))


def test_two_workers_store_what_one_stores(tmp_path: Path) -> None:
    plan = plan_from(SELECTED, "g")
    for workers in (1, 2):
        summary = run(plan, tmp_path / str(workers), noting(tmp_path / f"notes{workers}"), workers=workers)
        assert summary.ran == {"done": 14}
    assert records(tmp_path / "1") == records(tmp_path / "2")


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
    summary = run(plan, tmp_path, None, pack=2)
    assert summary.ran == {"done": 2}, records(tmp_path)
    assert all(0 <= each["test"]["pairs=2"]["accuracy"] <= 1 for each in records(tmp_path).values())
    assert run(plan, tmp_path, None).skipped == 2


def test_importing_the_runner_loads_nothing_heavy() -> None:
    code = "import sys, mclab.runner; print(sorted({'torch', 'dask', 'polars', 'distributed'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

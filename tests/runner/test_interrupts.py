"""What stops a grid half-way, and what the same command does then."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mclab.config.ids import run_id
from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Store, StoreError
from mclab.store.crashes import NAME
from tests.runner.test_execute import GATES, SELECTED, Trainer, outcome_of, records, run

# ---- what interrupts ----


def test_an_interrupt_loses_the_running_pack_alone(tmp_path: Path) -> None:
    plan, train = plan_from(GATES, "g"), Trainer()
    train.fate = lambda runs: KeyboardInterrupt() if len(train.packs) == 4 else None
    summary = run(plan, tmp_path, train)
    assert summary.interrupted
    assert (summary.ran, summary.missing, summary.stopped) == ({"done": 3}, 3, "interrupted")
    assert not (tmp_path / NAME).exists()  # no death of the run that was in training
    again = Trainer()
    assert run(plan, tmp_path, again).skipped == 3
    assert again.runs == train.runs[3:] + list(plan.first_runs())[4:]


def test_a_full_disk_stops_it_and_the_rest_runs_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, real, calls = plan_from(GATES, "g"), os.replace, 0

    def full(*paths: Any) -> None:
        nonlocal calls
        calls += Path(paths[1]).parent.name in ("records", "curves")
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
from mclab.config.options import RunOptions
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Store
from tests.runner.test_interrupts import GRID, noting

with Store(sys.argv[1]) as store:
    execute(plan_from(GRID, "g"), store, RunOptions("cpu", int(sys.argv[2])), train=noting(sys.argv[3], sys.argv[1]))
"""
GRID = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..6"}


def noting(notes: Path | str, deadly_to: str | None = None) -> Any:
    return partial(noted_training, notes=str(notes), deadly_to=deadly_to)


def noted_training(
    runs: Sequence[RunConfig],
    *,
    device: str,
    progress: Any = None,
    keep: Any = None,
    notes: str,
    deadly_to: str | None,
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
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", SCRIPT, str(out), str(workers), str(notes)]
    # Its workers hold the pipe too: this returns when the last of them is gone.
    done = subprocess.run(command, env=here, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    stored = set(records(out))
    assert 0 < len(stored) < 14
    with Store(out, say=pytest.fail) as store:
        summary = execute(plan, store, RunOptions("cpu", workers), train=noting(notes))
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
        summary = run(plan, tmp_path / str(workers), noting(tmp_path / f"notes{workers}"), RunOptions("cpu", workers))
        assert summary.ran == {"done": 14}
    assert records(tmp_path / "1") == records(tmp_path / "2")

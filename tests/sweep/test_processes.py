"""Searches as processes of their own: killed, interrupted, several on one study."""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest
from optuna.trial import FrozenTrial, TrialState

from mclab.sweep.postgres import Postgres
from mclab.sweep.storage import StudyStorage
from mclab.sweep.trials import counted, status
from tests.cli.test_process import still_there
from tests.commands import fine, records, started
from tests.sweep.bench import SPACE, FakeTraining, frozen, journal, space_file, trials

#: Seconds until a process that has not got so far is a failure.
PATIENCE = 120


def of(process: Popen[str], found: list[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that a process has running, all their parameters drawn."""
    running = [trial for trial in found if trial.state == TrialState.RUNNING and "run_ids" in trial.user_attrs]
    return [trial for trial in running if trial.user_attrs.get("owner", {}).get("pid") == process.pid]


def wait_for_a_trial(place: StudyStorage, process: Popen[str], least: int = 0) -> FrozenTrial:
    """Until the process runs a trial and at least so many are finished; it is stopped in the middle of that trial."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        try:
            found = frozen(place)
        except (KeyError, OSError):  # no study yet
            found = []
        if of(process, found) and len(counted(found)) >= least:
            process.send_signal(signal.SIGSTOP)
            if own := of(process, frozen(place)):
                return own[0]
            process.send_signal(signal.SIGCONT)
        time.sleep(0.02)
    raise AssertionError("no trial was begun")


def words(path: Path, *more: object) -> tuple[object, ...]:
    return ("sweep", "--space", path, *(() if "--workers" in more else ("--workers", 1)), *more)


def slow(folder: Path) -> Path:
    """A space in which a trial takes a while."""
    return space_file(folder, SPACE.replace("steps: 4", "steps: 100").replace("every: 2", "every: 100"))


def test_a_killed_search_goes_on_with_the_same_parameters(here: Path, training: FakeTraining) -> None:
    """optuna#485, #6615: after a SIGKILL a trial stays RUNNING for ever."""
    path = slow(here)
    with started(*words(path, "--trials", 4, "--out", "o"), folder=here) as process:
        lost = wait_for_a_trial(journal(here / "o"), process, least=1)
        process.kill()
        process.communicate()
    assert lost.state == TrialState.RUNNING
    done = fine(*words(path, "--trials", 4, "--out", "o"))
    said = f"trial {lost.number}: process {process.pid} on {os.uname().nodename} is gone"
    assert f"{said}; another trial takes over its parameters\n" in done.err
    found = trials(here / "o")
    assert found[lost.number]["status"] == "lost"
    (again,) = [trial for trial in found if trial["retry_of"] == lost.number]
    assert (again["status"], again["params"]) == ("done", lost.params)
    assert sum(trial["status"] == "done" for trial in found) == 4


@pytest.mark.parametrize(
    ("workers", "number", "code"),
    [(2, signal.SIGINT, 130), pytest.param(1, signal.SIGTERM, 143, marks=pytest.mark.product)],
)
def test_an_interrupt_ends_it_says_how_to_go_on_and_it_does(
    here: Path, training: FakeTraining, workers: int, number: int, code: int
) -> None:
    command = ["sweep", "--space", slow(here).name, "--trials", "5", "--workers", str(workers), "--out", "o"]
    with started(*command, folder=here) as process:
        lost = wait_for_a_trial(journal(here / "o"), process)
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (code, ""), err
    while still_there(process.pid):
        time.sleep(0.02)
    assert (
        err.splitlines()[-1]
        == f"{'interrupted' if code == 130 else 'terminated'}; to continue: mclab {' '.join(command)}"
    )
    assert "Traceback" not in err
    states = [status(trial) for trial in frozen(journal(here / "o"))]
    assert "running" not in states  # given up for whoever goes on
    done = fine(*command[:-4], "--workers", 1, "--out", "o")
    assert "5 of 5 trials, 5 distinct points" in done.err
    assert "is gone" not in done.err
    again = [trial for trial in trials(here / "o") if trial["status"] == "done" and trial["params"] == lost.params]
    assert len(again) == 1
    assert len(training.asked) == 5 - states.count("done")


def test_three_on_a_fresh_database_one_killed_finish_exactly_as_many_as_asked(here: Path, database: str) -> None:
    """optuna#1092, #4621, #3293: in one second, on one study; the dead one's parameters are finished by another."""
    asked, path, place = 8, slow(here), Postgres(database)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                started(*words(path, "--trials", asked, "--storage", database, "--out", f"o{n}"), folder=here)
            )
            for n in range(3)
        ]
        victim, *others = processes
        lost = wait_for_a_trial(place, victim, least=1)
        victim.kill()
        told = [process.communicate(timeout=PATIENCE)[1] for process in others]
        assert [process.returncode for process in others] == [0, 0], told
    found = frozen(place)
    place.close()
    finished = counted(found)
    assert len(finished) == asked
    assert {trial.state for trial in finished} == {TrialState.COMPLETE}
    assert {status(trial) for trial in found} == {"done", "lost"}
    (again,) = [trial for trial in finished if trial.user_attrs.get("retry_of") == lost.number]
    assert again.params == lost.params
    assert again.user_attrs["owner"]["pid"] != victim.pid
    assert found[lost.number].user_attrs["owner"]["pid"] == victim.pid
    assert len({str(trial.params) for trial in finished}) == asked
    stored = [name for n in range(3) for name in records(here / f"o{n}")]
    if set(lost.user_attrs["run_ids"]) <= set(records(here / "o0")):
        stored.remove(again.user_attrs["run_ids"][0])  # it was killed between its record and its word to the study
    assert sorted(stored) == sorted(trial.user_attrs["run_ids"][0] for trial in finished)
    assert all(f"study s: {asked} of {asked} trials, {asked} distinct points" in each for each in told)


@pytest.mark.product
def test_two_workers_measure_what_one_does(here: Path) -> None:
    """optuna#820: workers never touch the study. With random points the study is the same, in whatever order."""
    path = space_file(here)
    for count in (1, 2):
        fine(*words(path, "--trials", 5, "--workers", count, "--out", f"o{count}"))
    one, two = ({tuple(t["run_ids"]): (t["params"], t["values"]) for t in trials(here / f"o{n}")} for n in (1, 2))
    assert one == two

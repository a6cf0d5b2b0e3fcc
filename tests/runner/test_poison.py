"""Runs that end the process that trains them: given up after two deaths, whatever stands beside them is finished."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mclab.config.ids import run_id
from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.runner.own_modules import check_modules
from mclab.store import Store
from mclab.store.crashes import NAME, Flights
from tests.commands import TINY, fine, grid_file, mclab, no_plots, records, started
from tests.own_modules import GOOD, own, run_of
from tests.runner.test_execute import outcome_of

__all__ = ["own"]

# ---- what counts ----


def died(folder: Path, *runs: str, share: float = 0.0, checkpoint: int = 0) -> Flights:
    """A process that trains these runs and ends without a word; the next one's note."""
    flights = Flights(folder, {})
    flights.begin(runs)
    flights._written = 0.0
    flights.reached(share)
    after = Flights(folder, dict.fromkeys(runs, checkpoint) if checkpoint else {})
    after.begin([])
    return after


def test_two_deaths_in_a_row_count_against_what_trained(tmp_path: Path) -> None:
    first = died(tmp_path, "a", "b")
    assert [(first.suspect(run), first.poison(run)) for run in "abc"] == [(True, None), (True, None), (False, None)]
    second = died(tmp_path, "a")
    assert "died 2 times in a row while this run trained, at its start" in (second.poison("a") or "")
    assert (second.suspect("b"), second.poison("b")) == (True, None)
    second.settle(["a", "b"])
    assert not (tmp_path / NAME).exists()
    assert not Flights(tmp_path, {}).suspect("a")


def test_an_end_in_order_and_a_restart_of_the_machine_are_no_deaths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        flights = Flights(tmp_path, {})
        flights.begin(["a"])
        flights.end()
    assert not Flights(tmp_path, {}).suspect("a")
    died(tmp_path, "a")
    Flights(tmp_path, {}).begin(["a"])
    monkeypatch.setattr("mclab.store.crashes.boot_id", lambda: "another")
    after = Flights(tmp_path, {})
    assert (after.suspect("a"), after.poison("a")) == (True, None)  # of the first death, the second was none


@pytest.mark.parametrize(
    ("deaths", "given_up"),
    [
        ([(0.5, 0), (0.5, 0)], True),
        ([(0.5, 0), (0.55, 0)], True),  # where a note of how far it is came a moment later
        ([(0.2, 0), (0.5, 0)], False),  # somebody killed it
        ([(0.2, 0), (0.5, 0), (0.3, 0)], True),
        ([(0.20, 50), (0.25, 60)], False),  # it goes on from its newer checkpoint
        ([(0.20, 50), (0.25, 60), (0.25, 60)], True),
    ],
)
def test_who_gets_further_is_counted_anew(tmp_path: Path, deaths: list[tuple[float, int]], given_up: bool) -> None:
    for share, checkpoint in deaths:
        flights = died(tmp_path, "a", share=share, checkpoint=checkpoint)
    assert bool(flights.poison("a")) == given_up


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"now": 3}', '{"deaths": {"a": {"times": "x"}}}', '{"deaths": 1}'])
def test_a_damaged_note_costs_nothing(tmp_path: Path, note: str) -> None:
    (tmp_path / NAME).write_text(note)
    flights = Flights(tmp_path, {})
    assert not flights.suspect("a")
    flights.begin(["a"])
    flights.end()
    assert not (tmp_path / NAME).exists()


# ---- grids ----

SCRIPT = """
import sys
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Store
from tests.runner.test_poison import FOUR, GRID, deadly

with Store(sys.argv[1]) as store:
    execute(plan_from(GRID, "g"), store, FOUR, train=deadly)
"""
GRID = {"grid": {"model.mixer.gate": ["context"]}, "seeds": "0..7"}
POISON, FOUR = 2, RunOptions("cpu", 1, pack=4)


def deadly(runs: Sequence[RunConfig], *, device: str, progress: Any = None, keep: Any = None) -> list[Outcome]:
    """Seed 2 ends the process, whoever trains beside it."""
    if any(run.seed == POISON for run in runs):
        os.kill(os.getpid(), signal.SIGKILL)
    return [outcome_of(run) for run in runs]


def test_a_packs_members_train_alone_and_the_innocent_ones_finish(tmp_path: Path) -> None:
    def start() -> int:
        return subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False, timeout=60).returncode

    assert start() == -signal.SIGKILL
    assert not records(tmp_path)  # it is in the first pack
    assert start() == -signal.SIGKILL
    assert {record["seed"] for record in records(tmp_path).values()} == {0, 1, 4, 5, 6, 7}  # it comes after the others
    said: list[str] = []
    with Store(tmp_path) as store:
        summary = execute(plan_from(GRID, "g"), store, FOUR, train=deadly, echo=said.append)
    assert summary.ran == {"failed": 1, "done": 1}
    assert [line for line in said if "seed 2" in line and "the process died 2 times in a row" in line]
    plan = plan_from(GRID, "g")
    failed = next(run_id(run) for run in plan.first_runs() if run.seed == POISON)
    assert "the process died 2 times" in records(tmp_path)[failed]["error"]
    assert not (tmp_path / NAME).exists()


MODULE = """
import os, signal, torch
from torch import nn

class Dies(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim, dim)

    def forward(self, x):
        if {when}:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner(x)
"""
KILLS = TINY.replace(
    "grid: {model.mixer.gate: [context, none]}",
    "changes: {good: {}, bad: {model.mixer: {name: module, module: own_kills.Dies}}}",
)


def ended(folder: Path, *words: object) -> tuple[int, str]:
    with started(*words, folder=folder) as process:
        return process.communicate(timeout=120)[1], process.returncode


def test_a_module_that_kills_its_process_is_failed_at_the_third_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    no_plots(monkeypatch)
    (tmp_path / "own_kills.py").write_text(MODULE.format(when="True"))  # already where it is checked
    command = ["ablate", "--grid", grid_file(tmp_path, KILLS), "--workers", 1, "--out", "o"]
    for _ in range(2):
        assert ended(tmp_path, *command)[1] == -signal.SIGKILL
    assert not records(tmp_path / "o")
    done = mclab(*command)
    assert done.code == 3, done.err
    assert "this command: 2 done, 2 failed" in done.err
    assert done.err.count("the process died 2 times in a row while this run trained, at its start; possible") == 2
    assert sorted(record["status"] for record in records(tmp_path / "o").values()) == [
        "done",
        "done",
        "failed",
        "failed",
    ]
    assert "this command: nothing run; 4 stored before" in mclab(*command).err
    (tmp_path / "own_kills.py").write_text(MODULE.format(when="False"))
    sys.modules.pop("own_kills", None)
    assert "this command: 2 done" in fine(*command, "--retry-failed").err
    sys.modules.pop("own_kills", None)


# ---- where a module is looked at ----

AHEAD = """
class Ahead(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return x.flip(1)
"""


def test_a_module_that_ended_its_check_twice_is_refused_until_it_is_forgotten(own: Any, tmp_path: Path) -> None:
    own(GOOD)
    good, out = run_of("Mean"), tmp_path / "o"
    with Store(out) as store:
        died(store.path, run_id(good))
        died(store.path, run_id(good))
    with pytest.raises(ConfigError, match=r"died 2 times .*; mend its module, .* with --retry-failed"):
        check_modules([good], out, "cpu", pytest.fail, refuse=True)
    check_modules([good], out, "cpu", pytest.fail)  # left to those who train it
    assert (out / NAME).exists()
    check_modules([good], out, "cpu", pytest.fail, refuse=True, forget=True)
    assert not (out / NAME).exists()


def test_a_refused_module_leaves_no_folder_that_was_not_there(own: Any, tmp_path: Path) -> None:
    own(AHEAD)
    out = tmp_path / "o"
    for there in (False, True):
        if there:
            out.mkdir()
        with pytest.raises(ConfigError, match="not causal"):
            check_modules([run_of("Ahead")], out, "cpu", pytest.fail)
        assert out.exists() == there


@pytest.mark.parametrize(
    "spoilt",
    [
        '"times": 1e400',
        '"times": "\ud800"',
        f'"times": {"[" * 100_000}',
        '"times": 1}, "\\ud800": {"times": 1',
        '"x": 1',
    ],
)
def test_a_note_that_is_damaged_counts_for_nothing(tmp_path: Path, spoilt: str) -> None:
    died(tmp_path, "a")
    text = (tmp_path / NAME).read_text().replace('"times": 1', spoilt)
    (tmp_path / NAME).write_text(text, errors="surrogatepass")
    assert not Flights(tmp_path, {}).suspect("a")


def test_a_process_that_died_after_it_stored_a_run_leaves_no_note_against_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the record and the note that nothing trains: no run is left to settle it."""
    no_plots(monkeypatch)
    words = ("ablate", "--grid", grid_file(tmp_path), "--workers", 1, "--out", tmp_path / "o")
    fine(*words)
    stored = sorted(records(tmp_path / "o"))
    Flights(tmp_path / "o", {}).begin(stored[:1])
    assert "this command: nothing run; 4 stored before" in fine(*words).err
    assert not (tmp_path / "o" / NAME).exists()

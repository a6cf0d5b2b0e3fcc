"""How far a command is: seen on a terminal, told now and then elsewhere, never on standard output."""

import os
import pty
import re
from contextlib import suppress
from pathlib import Path

import pytest

from mclab.cli.progress import Lines
from mclab.runner import Ahead, Progress
from tests.commands import SCRIPT, fine


def on_terminal(*words: str) -> str:
    """What a command shows on a terminal that does not know its size, as in many a container."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(SCRIPT, [str(SCRIPT), *words])
    seen = b""
    with suppress(OSError):  # what Linux answers at the end
        while piece := os.read(terminal, 4096):
            seen += piece
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
    return seen.decode()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    ("workers", "who"), [(1, "1 process"), pytest.param(2, "2 processes", marks=pytest.mark.product)]
)
def test_a_terminal_shows_a_start_line_and_a_bar(here: Path, workers: int, who: str) -> None:
    seen = on_terminal("ablate", "--grid", "tiny.yaml", "--device", "cpu", "--workers", str(workers))
    start = rf"tiny: 4 runs to go \(0 stored\), {who}, into runs/tiny; about \d+ .* \(a rough guess, .*\)\r\n"
    assert re.search(start, seen)
    assert ("starting 2 workers" in seen) == (workers == 2)
    for done in range(5):
        assert f" {done}/4 [00:" in seen
    assert " s left" in seen
    assert ("step 4/4" in seen) == (workers == 1)


def test_a_start_line_and_results_apart(here: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--device", "cpu", "--workers", 1)
    fine(*words, "--seeds", "0..1")
    more = fine(*words, "--seeds", "0..2")
    start = r"tiny: 2 runs to go \(4 stored\), 1 process, into runs/tiny; about \d+ .* \(from 4 stored runs.*\)\n"
    assert re.search(start, more.err)
    assert "to go" not in more.out
    assert "to go" not in fine(*words, "--seeds", "0..2").err


def test_a_line_each_tenth_and_each_half_minute() -> None:
    times, said = [100.0], list[str]()
    lines = Lines(said.append, clock=lambda: times[-1])
    lines.again()
    for done, at in ((0, 101), (1, 110), (2, 111), (3, 111.5), (4, 112), (5, 113), (20, 120)):
        times.append(at)
        lines(Progress(done, 20))
    assert said == ["2/20 runs done, 11 s elapsed", "4/20 runs done, 12 s elapsed"]
    lines(Progress(5, 20, 3, 9))
    for at in (130, 141.9, 142.1, 143):
        times.append(at)
        lines.again()
    assert said[2:] == ["5/20 runs done, step 3/9 of the next, 42 s elapsed"]


def test_the_start_of_workers_is_a_step_of_its_own_with_the_time_that_is_predicted() -> None:
    now, said, stage = [0.0], list[str](), ["starting 2 workers"]
    left = [Ahead(0.0, 121.0, 38.0)]
    lines = Lines(said.append, clock=lambda: now[-1])
    lines(Progress(0, 9, ahead=lambda: left[-1], stage=lambda: stage[-1]))
    assert said == ["starting 2 workers"]
    for at, ahead in ((31.0, Ahead(0.0, 81.0, 7.0)), (62.0, Ahead(0.0, 59.0, 0.0))):
        now.append(at)
        left.append(ahead)
        lines.again()
    stage.append("")
    now.append(93.0)
    left.append(Ahead(0.5, 30.0))
    lines.again()
    assert said[1:] == [
        "0/9 runs done, starting 2 workers, 31 s elapsed, 7 s to 80 s left",
        "0/9 runs done, starting 2 workers, 62 s elapsed, up to 60 s left",
        "0/9 runs done, 50 %, 93 s elapsed, 30 s left",
    ]


def test_what_is_ahead_is_told_as_it_is_by_then() -> None:
    now, said, left = [0.0], list[str](), [Ahead(0.41, 130.0)]
    lines = Lines(said.append, clock=lambda: now[-1])
    now.append(40.0)
    lines(Progress(7, 21, ahead=lambda: left[-1]))
    assert said == ["7/21 runs done, 41 %, 40 s elapsed, 2 min left"]
    now.append(80.0)
    left.append(Ahead(0.6, 50.4))
    lines.again()
    assert said[1:] == ["7/21 runs done, 60 %, 80 s elapsed, 50 s left"]

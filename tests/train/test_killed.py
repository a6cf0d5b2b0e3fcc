"""Killed in the middle of training and given again, a command ends with the weights of one that was left alone."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mclab.config.stored import StoredRun
from mclab.store import Records
from tests.commands import SMALL, fine, no_plots, started

RUN = (
    *("train", *(each for each in SMALL if not each.startswith(("train.steps", "eval.every")))),
    *("train.steps=120", "eval.every=40", "train.checkpoint_every=50", "--save-weights", "--device", "cpu"),
)
DYING = """
import os, signal, sys
from mclab.cli import main
from mclab.train.loop import _Training

step = _Training._step

def dying(self, batch, number):
    if number == 70:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, number)

_Training._step = dying
sys.argv = ["mclab", *sys.argv[1:]]
main()
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)


def files(out: Path, room: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / room).iterdir()}


def science(out: Path) -> list[StoredRun]:
    """The records without clocks and provenance."""
    return [replace(each, wall_s=None, tokens_per_s=None, provenance=None, sha256=None) for each in Records(out).scan()]


def assert_same(out: Path, whole: Path) -> None:
    for room in ("weights", "curves"):
        assert files(out, room) == files(whole, room)
    assert science(out) == science(whole)
    assert not (out / "checkpoints").exists()


def test_a_run_killed_after_its_checkpoint_ends_with_the_same_bytes(tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = [sys.executable, "-c", DYING, *RUN, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(files(out, "checkpoints")) == 1
    assert not (out / "weights").exists()
    fine(*RUN, "--out", out)
    (record,) = Records(out).scan()
    assert (record.steps, record.fact("resumed_at")) == (120, "50")
    fine(*RUN, "--out", whole)
    assert Records(whole).scan()[0].fact("resumed_at") is None
    assert_same(out, whole)


@pytest.mark.product
def test_worker_processes_keep_checkpoints_too(tmp_path: Path) -> None:
    """Killed as soon as one is there, wherever the runs are then."""
    out, whole, seeds = tmp_path / "out", tmp_path / "whole", ("--seeds", "0..2")
    with started(*RUN, *seeds, "--workers", 2, "--out", out, folder=tmp_path) as process:
        while not list(out.glob("checkpoints/[!.]*")) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.communicate()  # the workers hold its pipes, and end with it
    fine(*RUN, *seeds, "--out", out)
    fine(*RUN, *seeds, "--out", whole)
    assert_same(out, whole)

"""mclab train: a folder that gathers the runs of several commands."""

import json
from pathlib import Path

import pytest

from mclab.kernels import compile_mode
from tests.commands import SMALL, fine, mclab, no_plots, one_line


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)


def test_train_gathers_runs_in_one_folder(here: Path) -> None:
    assert fine("train", *SMALL).out.split()[:4] == ["train", "cell", "test", "accuracy"]
    fine("train", *SMALL, "model.mixer.aggregate=soup", "--seeds", "0..1")
    assert "left to run" in fine("train", *SMALL, "--dry-run").out
    (folder,) = fine("list", "--json").json
    assert (folder["kind"], folder["stored"], folder["planned"]) == ("train", 3, 3)
    rows = fine("list", "runs/train", "--json").json
    assert [(row["aggregate"], row["seed"]) for row in rows] == [("soup", 0), ("soup", 1), ("grm", 0)]
    one_line(mclab("ablate", "--grid", "tiny.yaml", "--out", "runs/train"), "holds another grid")


def test_what_cannot_compile_is_said_once_and_changes_no_id(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_mode, "_failed", "")
    monkeypatch.setenv("CXX", "no-such-compiler")
    said = fine("train", *SMALL, "--seeds", "0..1", "--compile", "on").err
    assert said.count("--compile: steps are eager, since compiling failed: no C++ compiler is found") == 1
    (record, _) = (json.loads(path.read_bytes()) for path in Path("runs/train/records").iterdir())
    assert record["provenance"]["compiled"].startswith("no (no C++ compiler is found (no-such-compiler;")
    assert "nothing run" in fine("train", *SMALL, "--seeds", "0..1").err


def test_a_grids_file_is_no_override() -> None:
    one_line(mclab("train", "g.yaml"), "g.yaml is a grid's file: mclab ablate --grid g.yaml trains it")


def test_train_leaves_a_grids_folder_alone(here: Path) -> None:
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--smoke", "--out", "out")
    one_line(mclab("train", *SMALL, "--out", "out"), "out holds another grid")
    assert "needs --extend" in fine("train", *SMALL, "--out", "out", "--dry-run").out

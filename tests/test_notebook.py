"""`mclab.run`: what `mclab ablate` runs of a grid, and what `mclab.load` gives of it."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tqdm import tqdm

import mclab
from mclab.plan.loader import load_text
from mclab.runner import Progress
from tests.commands import TINY, fine, grid_file, no_plots, records, snapshot


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    no_plots(monkeypatch)
    return tmp_path


def test_it_runs_what_the_command_runs_and_loads_it(here: Path) -> None:
    """The same folder: what one has stored the other does not run again."""
    grid_file(here)
    runs = mclab.run("tiny.yaml", workers=1, quiet=True)
    assert runs.equals(mclab.load("runs/tiny"))
    assert runs["gate"].to_list() == ["context", "context", "none", "none"]
    before = snapshot(here / "runs/tiny/records")
    assert "0 stored before" not in fine("ablate", "--grid", "tiny.yaml", "--workers", 1).err
    assert mclab.run(here / "tiny.yaml", workers=1, quiet=True).equals(runs)
    assert snapshot(here / "runs/tiny/records") == before
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--out", "other")
    assert set(records(here / "other")) == set(runs["run_id"])


def test_text_and_mappings_are_grids_too(here: Path) -> None:
    """In a folder named after what they hold, or the one that is given; what was run there is not run again."""
    data, _ = load_text(TINY, "tiny")
    text, mapping = (mclab.run(grid, workers=1, quiet=True) for grid in (TINY, data))
    own = ["run_id", "gate", "seed", "test_loss"]
    assert text[own].equals(mapping[own])
    folders = sorted((here / "runs").iterdir())
    assert len(folders) == 2
    before = snapshot(here)
    mclab.run(TINY, workers=1, quiet=True)
    assert snapshot(here) == before
    longer = mclab.run(data, out="long", workers=1, overrides=["train.steps=6"], quiet=True)
    assert not set(longer["run_id"]) & set(text["run_id"])
    for folder in (*folders, here / "long"):  # what is stored of the grid is a grid that commands go on with
        assert "0 run" not in fine("table", folder).err
        fine("ablate", "--grid", folder / "grid.yaml", "--dry-run")


@pytest.mark.product  # two processes take long to start
def test_it_runs_in_a_notebooks_event_loop_on_several_processes(here: Path) -> None:
    async def cell() -> Any:
        return mclab.run(TINY, workers=2, quiet=True)

    assert asyncio.run(cell())["status"].to_list() == ["done"] * 4


def test_it_says_how_far_it_is_unless_it_is_to_be_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    mclab.run(TINY, out="said", workers=1)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("grid-")
    assert told.err.splitlines()[-1].startswith("this command: 4 done; 0 stored before")
    mclab.run(TINY, out="silent", workers=1, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_gets_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full at its end, also where nothing was left to run: else it would stay, in red."""
    ends = list[tuple[str, float]]()

    class Bar(tqdm):  # type: ignore[type-arg]
        def close(self) -> None:
            if not self.disable:
                ends.append((self.desc, self.n))
            super().close()

    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    mclab.run(TINY, workers=1)
    mclab.run(TINY, workers=1)
    assert [end for end in ends if end[1]] == [("4/4", 1.0), ("", 1.0)]


def test_an_interrupt_goes_on_to_the_caller_and_the_rest_is_run_later(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def impatient() -> Iterator[tuple[Callable[[Progress], None], Callable[[str], None]]]:
        def show(now: Progress) -> None:
            if now.done == 3:
                raise KeyboardInterrupt

        yield show, lambda line: None

    with monkeypatch.context() as patched:
        patched.setattr("mclab.notebook.progress", impatient)
        with pytest.raises(KeyboardInterrupt):
            mclab.run(TINY, out="mine", workers=1)
    before = records(here / "mine")
    assert len(before) == 3
    assert len(mclab.run(TINY, out="mine", workers=1, quiet=True)) == 4
    assert before.items() <= records(here / "mine").items()


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ("none.yaml", {}, "none.yaml: cannot be read: no such file"),
        ("base:\n  modl: 1\n", {}, "grid:2: modl: unknown key; did you mean model?"),
        ({"base": {"modl": 1}}, {}, "grid: modl: unknown key; did you mean model?"),
        ({"base": {1, 2}}, {}, "grid: values must be numbers, texts, .*: Object of type set is not JSON"),
        ({"base": {"train": {"lr": float("nan")}}}, {}, "grid: values must be numbers, texts"),
        (7, {}, "grid: must be a path, a YAML text or a mapping, not int"),
        ("\n", {}, "grid: the file is empty"),
        (TINY, {"workers": 0}, "workers: must be auto or a number from 1 to 9999, got 0"),
        (TINY, {"overrides": "train.stepps=3"}, "train.stepps=3: train.stepps: unknown key; did you mean train.steps?"),
    ],
)
def test_what_is_wrong_is_told_as_a_command_tells_it(
    here: Path, grid: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(mclab.ConfigError, match=f"^{message}"):
        mclab.run(grid, **options)
    assert not list(here.iterdir())

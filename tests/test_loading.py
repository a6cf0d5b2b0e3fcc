"""`mclab.load`, and what `import mclab` costs."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import mclab
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.report.write import write_tables
from mclab.runner import execute
from mclab.store import Store


def ran(out: Path, adopt: bool) -> None:
    def train(runs: list[object], **_: object) -> list[Outcome]:
        score = {ALL: Score(0.5, 1.0)}
        return [Outcome("done", steps=9, valid=score, test=score, params=7) for _ in runs]

    plan = plan_from({"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..1"}, "g")
    with Store(out) as store:
        if adopt:
            store.adopt(plan)
        execute(plan, store, train=train)
        if adopt:
            write_tables(plan, store.lookup, out)


def test_the_frame_is_that_of_runs_csv(tmp_path: Path) -> None:
    ran(tmp_path, adopt=True)
    frame = mclab.load(tmp_path)
    assert frame.equals(pl.read_csv(tmp_path / "runs.csv", schema=frame.schema))
    assert frame["gate"].to_list() == ["context", "context", "input", "input"]
    assert mclab.load(str(tmp_path)).equals(frame)


def test_without_a_plan_every_record_is_a_row(tmp_path: Path) -> None:
    ran(tmp_path, adopt=False)
    frame = mclab.load(tmp_path)
    assert sorted(frame["model.mixer.gate"]) == ["context", "context", "input", "input"]
    assert frame["test_accuracy"].to_list() == [0.5] * 4


def test_no_folder_is_a_plain_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such run folder"):
        mclab.load(tmp_path / "none")


def test_importing_mclab_imports_nothing_heavy() -> None:
    code = "import sys, mclab; print([m for m in ('torch', 'polars', 'matplotlib', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")

"""`mclab.load`, and what `import mclab` costs."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import mclab
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.report.write import write_tables
from mclab.runner import execute
from mclab.store import Store
from tests.commands import mclab as command
from tests.commands import one_line
from tests.stored import done


def ran(out: Path, adopt: bool) -> None:
    def train(runs: list[RunConfig], **_: object) -> list[Outcome]:
        return [done(run, steps=9, params=7) for run in runs]

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


def test_a_folder_without_runs_is_the_error_that_list_gives(tmp_path: Path) -> None:
    ran(tmp_path / "runs/mine", adopt=True)
    (tmp_path / "mine").mkdir()
    for folder, hint in ((tmp_path / "mine", "give the --out of an ablate"), (tmp_path / "runs", "did you mean ")):
        with pytest.raises(ConfigError, match="holds no records; ") as caught:
            mclab.load(folder)
        assert hint in str(caught.value)
        one_line(command("list", folder), str(caught.value))


def test_curves_are_a_row_a_look_that_joins_the_runs(tmp_path: Path) -> None:
    def train(runs: list[RunConfig], **_: object) -> list[Outcome]:
        looks = [
            {"step": n, "loss": 1 / n, "valid": {"all": {"accuracy": n / 4, "loss": 1.0}, "pairs=4": {"accuracy": 0.5}}}
            for n in (2, 4)
        ]
        return [done(run, curve=tuple(looks)) for run in runs]

    plan = plan_from({"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..1"}, "g")
    with Store(tmp_path) as store:
        store.adopt(plan)
        execute(plan, store, train=train)
    curves = mclab.load_curves(tmp_path)
    assert curves.columns == [
        *("run_id", "seed", "step", "loss", "valid_accuracy", "valid_loss", "valid_accuracy[pairs=4]"),
    ]
    assert curves["step"].to_list() == [2, 4] * 4
    assert curves["valid_accuracy"].to_list() == [0.5, 1.0] * 4
    assert curves.join(mclab.load(tmp_path), on=["run_id", "seed"])["gate"].value_counts()["count"].to_list() == [4, 4]
    with pytest.raises(mclab.ConfigError, match="no such run folder"):
        mclab.load_curves(tmp_path / "none")


def test_importing_mclab_imports_nothing_heavy() -> None:
    """Nor does the error that all of it raises."""
    heavy = ("torch", "polars", "matplotlib", "pydantic", "yaml")
    code = f"import sys, mclab; mclab.ConfigError, mclab.load_curves; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_what_mclab_does_not_have_is_an_attribute_error() -> None:
    assert mclab.ConfigError is ConfigError
    with pytest.raises(AttributeError, match="module 'mclab' has no attribute 'lod'"):
        mclab.lod  # noqa: B018

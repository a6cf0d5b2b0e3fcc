"""A pipe or a device where a run folder's file should be: named at once, never waited for."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mclab
from mclab.config.ids import run_id
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.store import Records, Store
from mclab.sweep.journal import Journal
from mclab.train.checkpoint import restore
from mclab.train.weights import load_model
from tests.runner.test_execute import GATES, outcome_of
from tests.runner.test_execute import run as execute

TOLD = "it is a pipe or a device, not a file"


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """A guard against waiting for ever, not a bound."""

    def late(*_: Any) -> None:
        raise AssertionError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["pipe", "device"])
def put(request: pytest.FixtureRequest) -> Any:
    """Puts a pipe, or a link to a device without an end, in the place of a file."""

    def place(path: Path) -> Path:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path) if request.param == "pipe" else path.symlink_to("/dev/zero")
        return path

    return place


def test_in_place_of_a_record_it_counts_as_missing_and_the_run_is_trained_again(tmp_path: Path, put: Any) -> None:
    plan = plan_from(GATES, "g")
    execute(plan, tmp_path, train)
    name, said = run_id(next(iter(plan.first_runs()))), list[str]()
    path = put(tmp_path / "records" / f"{name}.json")
    assert Records(tmp_path, say=said.append).lookup(name) is None
    assert said == [f"{path}: {TOLD}; the run counts as missing"]
    with Store(tmp_path, say=said.append) as store:
        assert store.lookup(name) is None
    assert execute(plan, tmp_path, train).ran == {"done": 1}
    assert path.is_file()


def train(runs: Any, *, device: str, progress: Any = None, keep: Any = None) -> Any:
    return [outcome_of(run) for run in runs]


def test_in_place_of_any_other_file_it_is_named(tmp_path: Path, put: Any) -> None:
    name, said = "0123456789abcdef", list[str]()
    (tmp_path / "records").mkdir()
    records = Records(tmp_path, say=said.append)
    curve = put(tmp_path / "curves" / f"{name}.ndjson")
    assert records.curve(name) == []
    assert said == [f"{curve}: the file cannot be read: {TOLD}; the curve is left out"]
    trials = put(tmp_path / "trials.json")
    with pytest.raises(ConfigError, match=f"{trials}: cannot read: {TOLD}"):
        mclab.load(tmp_path)
    plan = put(tmp_path / "plan.json")
    with pytest.raises(ConfigError, match=f"{plan}: cannot read: {TOLD}"):
        records.plan()
    journal = put(tmp_path / "journal.log")
    with pytest.raises(ConfigError, match=f"{journal}: cannot read: {TOLD}"):
        Journal(journal, said.append)
    weights = put(tmp_path / "weights" / f"{name}.safetensors")
    with pytest.raises(ConfigError, match=TOLD):
        load_model(tmp_path, name)
    with pytest.raises(ConfigError):
        load_model(weights)


def test_in_place_of_a_checkpoint_the_run_starts_over(tmp_path: Path, put: Any) -> None:
    from torch import device

    from mclab.train.pack import Pack

    run = next(iter(plan_from(GATES, "g").first_runs()))
    path = put(tmp_path / f"{run_id(run)}.2.safetensors")
    found = restore(tmp_path, Pack([run], device("cpu")))
    assert isinstance(found, str)
    assert found.startswith(f"training started over, because {path} cannot be used: ")
    assert TOLD in found

"""Samplers and pruners by name, and what they lack, said before the first trial."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mclab.plan.space_load import PRUNERS, SAMPLERS
from tests.commands import fine, mclab, one_line
from tests.sweep.bench import BASE, SIX, SPACE, FakeTraining, space_file, trials


def words(path: Path, *more: object) -> tuple[object, ...]:
    return ("sweep", "--space", path, "--out", "o", "--workers", 1, *more)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_goes_on_past_its_start(here: Path, training: FakeTraining, name: str) -> None:
    path = space_file(here, SIX if name == "grid" else SPACE)
    fine(*words(path, "--trials", 13, "--sampler", name))
    found = trials(here / "o")
    assert {trial["status"] for trial in found} == {"done"}
    assert len(found) == (6 if name == "grid" else 13)
    if name not in ("grid", "gp"):  # what is drawn on a continuum is drawn once; gp may go to the edge again
        assert len({trial["params"]["train.lr"] for trial in found}) == 13


def test_tpe_finds_the_better_half(here: Path, training: FakeTraining) -> None:
    training.score = lambda run: 1 - abs(run.train.lr - 0.02)
    fine(*words(space_file(here), "--trials", 30, "--sampler", "tpe"))
    late = [trial["params"]["train.lr"] for trial in trials(here / "o")[15:]]
    assert sum(0.005 < lr < 0.05 for lr in late) > 10


@pytest.mark.parametrize(("name", "package"), [("gp", "torch"), ("gp", "scipy"), ("qmc", "scipy"), ("cmaes", "cmaes")])
def test_a_missing_package_is_said_before_the_first_trial(
    here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    """optuna#6477: Optuna finds out in the middle of the search."""

    def without(wanted: str, *rest: Any) -> Any:
        return None if wanted == package else find_spec(wanted, *rest)

    monkeypatch.setattr("mclab.sweep.samplers.find_spec", without)
    one_line(mclab(*words(space_file(here), "--trials", 3, "--sampler", name)), f"{name} needs the package {package}")
    assert not (here / "o").exists()


def test_a_missing_driver_is_said_before_the_first_trial(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.sweep.postgres.find_spec", lambda name: None)
    done = mclab(*words(space_file(here), "--trials", 3, "--storage", "postgresql://u:secret@127.0.0.1/db"))
    one_line(
        done,
        ("--storage: a PostgreSQL database needs the package psycopg; install it with: pip install 'mclab[postgres]'"),
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--sampler", "tpee"),
            '--sampler: must be one of tpe, random, gp, cmaes, qmc, grid, got "tpee"; did you mean tpe?',
        ),
        (("--pruner", "wilcoxon"), '--pruner: must be one of none, median, got "wilcoxon"'),
        (
            ("--storage", "mysql://x/y"),
            "--storage: 'mysql://x/y' names neither a database nor a file; write postgresql://",
        ),
        (("--storage", "postgresql://u:secret@127.0.0.1:1/db"), "--storage: postgresql://u:***@127.0.0.1:1/db: "),
        (("--sampler", "grid"), "sampler: grid needs a list of values or a step for train.lr"),
    ],
)
def test_what_is_asked_for_wrongly_is_a_line(
    here: Path, training: FakeTraining, given: tuple[str, str], said: str
) -> None:
    one_line(mclab(*words(space_file(here), "--trials", 3, *given)), said)
    assert not training.asked


def test_one_objective_is_all_that_some_can_do(here: Path, training: FakeTraining) -> None:
    text = f"{BASE}\nspace:\n  train.lr: [1.0e-3, 1.0e-2]\nobjective: [valid.accuracy, params]\n"
    path = space_file(here, text)
    one_line(mclab(*words(path, "--trials", 3, "--sampler", "cmaes")), "cmaes can search for only one objective")
    one_line(mclab(*words(path, "--trials", 3, "--pruner", "median")), "median can judge only one objective")
    for name in ("gp", "random", "qmc"):
        fine(*words(path, "--trials", 3, "--sampler", name, "--study", name))


@pytest.mark.parametrize("pruner", PRUNERS)
def test_pruners_by_name(here: Path, training: FakeTraining, pruner: str) -> None:
    training.chance = 0.0  # known, and every trial is above it: who waits until most recall need not wait
    fine(*words(space_file(here), "--trials", 12, "--pruner", pruner))
    found = {trial["status"] for trial in trials(here / "o")}
    assert found == ({"done"} if pruner == "none" else {"done", "pruned"})

"""`mclab sweep --confirm`: the grid around the best point is written, run, and set beside what the search says."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from mclab.config.run import RunConfig
from tests.commands import fine, mclab, no_plots, one_line, records
from tests.sweep.bench import BASE, FakeTraining, space_file

#: Twelve points: the gate decides, init and learning rate do not.
SPACE = f"""{BASE}
space:
  model.mixer.gate: [context, input]
  model.mixer.init: [restart, checkpoint]
  train.lr: [1.0e-3, 1.0e-2, 1.0e-1]
sampler: grid
"""


def by_the_gate(run: RunConfig) -> float:
    """What the gate decides, with a little of the run's own."""
    gate = run.model.mixer.gate  # type: ignore[union-attr]
    own = Random(f"{run.seed} {gate} {run.model.mixer.init} {run.train.lr}").random()  # type: ignore[union-attr]
    return (0.9 if gate == "context" else 0.6) + 0.05 * own


@pytest.fixture
def deciding(here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch) -> FakeTraining:
    no_plots(monkeypatch)
    space_file(here, SPACE)
    training.score = by_the_gate
    return training


SEARCH = ("sweep", "--space", "s.yaml", "--trials", 12, "--workers", 1, "--out", "o")


def test_a_search_is_confirmed_choice_by_choice(deciding: FakeTraining, here: Path) -> None:
    searched = fine(*SEARCH)
    assert f"an ablation decides: mclab {' '.join(map(str, SEARCH))} --confirm" in searched.out
    asked = len(deciding.asked)
    done = fine(*SEARCH, "--confirm")
    grid = next(here.glob("o/confirm-*.yaml"))
    stored = records(here / "o" / grid.stem)
    assert len(stored) == len(deciding.asked) - asked
    seeds = Counter(record["config"]["model.mixer.gate"] for record in stored.values())
    assert seeds["input"] == 5  # told at the first look; the rows of init and learning rate go on
    assert 0 not in {record["seed"] for record in stored.values()}  # the search has used it
    words = " ".join(done.out.split())
    assert "search and confirmation" in words
    assert "gate=context is confirmed: input by 0." in words
    assert "does not matter here" in words or "is open" in words
    assert "an ablation decides: mclab" not in words
    page = (here / "o/tables/confirm.md").read_text()
    assert "importance (search)" in page
    assert "gate=context is confirmed" in page
    again = fine(*SEARCH, "--confirm")
    assert len(deciding.asked) == asked + len(stored)
    assert again.out == done.out


def test_programs_read_the_verdicts(deciding: FakeTraining) -> None:
    found = fine(*SEARCH, "--confirm", "--json").json
    assert found["finished"] == 12
    verdicts = {each["row"]: each for each in found["confirmation"]["verdicts"]}
    assert verdicts["gate=input"]["verdict"] == "worse"
    assert verdicts["gate=input"]["difference"] == pytest.approx(-0.3, abs=0.05)
    assert verdicts["gate=input"]["importance"] > 0.8
    assert {each["verdict"] for each in verdicts.values() if "gate" not in each["row"]} <= {"even", "open"}


def test_a_search_at_chance_has_nothing_to_confirm(deciding: FakeTraining, here: Path) -> None:
    deciding.chance = 0.99
    done = mclab(*SEARCH, "--confirm")
    assert done.code == 2
    assert "too few trials have begun to recall" in done.err.splitlines()[-1]
    assert "--confirm" not in done.out
    assert not list(here.glob("o/confirm-*"))


def test_two_studies_in_one_folder_have_grids_of_their_own(deciding: FakeTraining, here: Path) -> None:
    fine(*SEARCH, "--confirm")
    fine(*SEARCH, "--study", "second", "--confirm")
    assert len(list(here.glob("o/confirm-*.yaml"))) == 2
    assert json.loads((here / "o/trials.json").read_text())["study"] == "second"


def test_trials_are_asked_for_all_the_same(here: Path) -> None:
    space_file(here, SPACE)
    one_line(mclab("sweep", "--space", "s.yaml", "--confirm"), "--trials")

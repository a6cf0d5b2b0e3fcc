"""The grid around the best point of a search: every row is the run that the space has there."""

from pathlib import Path

import pytest

from mclab.config.ids import run_id
from mclab.config.strict import ConfigError
from mclab.plan.confirm import BEST, confirmation
from mclab.plan.grid import load_plan
from mclab.plan.space_load import load_space
from mclab.plan.space_trials import Trials

BASE = """
base:
  task: {vocab: 16, length: 16, pairs: [1, 2]}
  model: {dim: 8, layers: 1, mixer: {segment: 4, gate: none}}
  train: {steps: 4, batch: 8}
  eval: {valid: 8, test: 16}
"""
SPACE = f"""{BASE}
space:
  model.mixer.gate: [context, input, none]
  model.mixer.connector: [own, shared]
  model.mixer.aggregate: [grm, ssc, none]
  model.mixer.k: {{low: 1, high: 3}}
  model.dim: {{low: 8, high: 80, step: 8}}
  train.lr: {{low: 1.0e-3, high: 1.0e-1, log: true}}
when:
  model.mixer.k: {{model.mixer.aggregate: ssc}}
  model.mixer.connector: {{model.mixer.gate: context}}
repeats: 2
"""
GATE, AGGREGATE, K, DIM, LR = "model.mixer.gate", "model.mixer.aggregate", "model.mixer.k", "model.dim", "train.lr"
CONNECTOR = "model.mixer.connector"
POINT = {GATE: "context", CONNECTOR: "shared", AGGREGATE: "ssc", K: 2, DIM: 40, LR: 0.01}


def made(folder: Path, params, text: str = SPACE, value: float = 0.5):
    """The space, and the grid around a trial that is better than the base."""
    path = folder / "s.yaml"
    path.write_text(text)
    space = load_space(path)
    trials = (
        trial(0, space, dict(space.start), value - 0.1),
        trial(1, space, params, value),
    )
    found = Trials("s", None, tuple(a.spec for a in space.axes), space.objectives, space.seeds, 2, trials)
    return space, confirmation(space, found)


def trial(number, space, params, value):
    from mclab.plan.space_trials import Trial

    point = space.point(params)
    return Trial(number, "done", params, (value,), {"valid.accuracy": value}, point.inert, point.run_ids)


def rows(folder: Path, asked):
    path = folder / "confirm.yaml"
    path.write_text(asked.text)
    return {cell.name: cell.candidates[0] for cell in load_plan(path).cells}


def test_every_row_is_the_point_of_the_space_with_one_choice_changed(tmp_path):
    space, asked = made(tmp_path, POINT)
    found = rows(tmp_path, asked)
    assert list(found) == [
        *(BEST, "gate=input", "gate=none", "connector=own", "aggregate=grm", "aggregate=none"),
        *("k=1", "k=3", "dim=24", "dim=56", "lr=0.00316", "lr=0.0316"),
    ]
    points = {BEST: POINT, **{change.name: change.params for change in asked.changes}}
    for name, candidate in found.items():
        seed, run = next(iter(candidate.runs.items()))
        there = space.point(points[name]).runs[0]
        assert run_id(run) == run_id(there.model_copy(update={"seed": seed})), name
    assert asked.axis_of("gate=none") == GATE
    assert points["aggregate=grm"].keys() == POINT.keys() - {K}
    assert points["gate=input"].keys() == POINT.keys() - {CONNECTOR}


def test_seeds_are_those_that_the_search_has_not_used(tmp_path):
    _, asked = made(tmp_path, POINT)
    assert set(rows(tmp_path, asked)[BEST].runs) == set(range(2, 22))
    plan = load_plan(tmp_path / "confirm.yaml")
    assert plan.until is not None
    assert (plan.until.looks, plan.until.even) == ((5, 8, 12, 16, 20), 0.02)


def test_an_axis_without_a_value_there_and_one_that_changes_nothing_have_no_row(tmp_path):
    _, asked = made(tmp_path, {GATE: "input", AGGREGATE: "none", DIM: 8, LR: 0.1})
    assert [change.name for change in asked.changes] == [
        *("aggregate=grm", "aggregate=ssc", "dim=24", "lr=0.0316"),
    ]


def test_points_that_rules_refuse_are_named(tmp_path):
    text = f"""{BASE}
space:
  model.mixer.gate: [context, none]
  model.mixer.aggregate: [grm, soup]
exclude: [{{model.mixer.aggregate: soup, model.mixer.gate: none}}]
"""
    _, asked = made(tmp_path, {GATE: "context", AGGREGATE: "soup"}, text)
    assert [change.name for change in asked.changes] == ["aggregate=grm"]
    assert len(asked.refused) == 1
    assert asked.refused[0].startswith("gate=none: ")


def test_another_mixer_replaces_the_whole(tmp_path):
    text = f"""{BASE}
space:
  model.mixer:
  - {{name: memory, memory: linear, segment: 4, gate: none}}
  - {{name: attention}}
  train.lr: [0.01, 0.02]
"""
    path = tmp_path / "s.yaml"
    path.write_text(text)
    space = load_space(path)
    first, second = space.axes[0].spec.values
    for best, other in ((first, second), (second, first)):
        _, asked = made(tmp_path, {"model.mixer": best, LR: 0.02}, text)
        found = rows(tmp_path, asked)
        name = next(name for name in found if name.startswith("mixer="))
        seed, run = next(iter(found[name].runs.items()))
        there = space.point({"model.mixer": other, LR: 0.02}).runs[0]
        assert run_id(run) == run_id(there.model_copy(update={"seed": seed}))


def test_words_that_yaml_takes_for_others_come_back(tmp_path):
    text = f"{BASE}\nspace:\n  model.mixer.gate: [none, context]\n  train.lr: [1.0e-5, 2.0e-5]\n"
    _, asked = made(tmp_path, {GATE: "none", LR: 1e-5}, text)
    assert [run.train.lr for run in rows(tmp_path, asked)["lr=2e-05"].runs.values()] == [2e-5] * 20


def test_nothing_to_confirm_is_said(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(f"{BASE}\nspace:\n  train.lr: [0.01]\n")
    space = load_space(path)
    empty = Trials("s", None, tuple(a.spec for a in space.axes), space.objectives, space.seeds, 2, ())
    with pytest.raises(ConfigError, match="no trial is finished"):
        confirmation(space, empty)
    with pytest.raises(ConfigError, match="every axis has only one value there"):
        confirmation(space, Trials(**{**vars(empty), "trials": (trial(0, space, {LR: 0.01}, 0.5),)}))

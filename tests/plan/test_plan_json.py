"""A plan as data and back, two plans compared, a plan counted."""

import json
from dataclasses import replace
from typing import Any

import pytest

from mclab.config.ids import run_id
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.plan import Given, Plan, tokens, workload
from mclab.plan.plan_diff import plan_diff, renewal
from mclab.plan.plan_json import as_dict, from_dict
from tests.plan.conftest import Make
from tests.plan.test_grid import GATING

CHANGES = """
    question: x
    changes:
      full: {}
      softmax: {model.mixer: {name: attention, window: null}}
      odd: {model.mixer.segment: 64, task.pairs: [4, 8]}
    select: {over: {train.stop_at: [null, 0.5], model.mixer.gate: [none, input]}, by: valid.loss}
    when: {model.mixer.gate: {model.mixer.name: memory}}
    seeds: [3, 1, 2]
    """


def through_json(plan: Plan) -> Plan:
    return from_dict(json.loads(json.dumps(as_dict(plan))))


@pytest.mark.parametrize("text", [GATING, CHANGES, "question: x"])
def test_there_and_back(plan: Make, text: str):
    made = plan(text)
    back = through_json(made)
    assert back == made
    assert json.dumps(as_dict(back)) == json.dumps(as_dict(made))
    assert [c.run_ids() for cell in back.cells for c in cell.candidates] == [
        {seed: run_id(run) for seed, run in c.runs.items()} for cell in made.cells for c in cell.candidates
    ]


def test_what_it_holds(plan: Make):
    data = as_dict(plan(GATING))
    assert list(data) == [
        *(
            "name",
            "question",
            "science",
            "given",
            "written",
            "axes",
            "named",
            "seeds",
            "select",
            "listed",
            "notes",
            "warnings",
            "cells",
        ),
    ]
    candidate = data["cells"][2]["candidates"][0]
    assert data["cells"][2]["values"] == {"model.mixer.gate": "none"}
    assert candidate["values"] == {"train.lr": 0.003}
    assert candidate["config"]["model.mixer.aggregate"] == "residual"
    assert candidate["config"]["task.pairs"] == [4, 8, 16]
    assert list(candidate["runs"]) == ["0", "1", "2", "3", "4"]


def test_what_was_given_is_kept_and_two_spellings_are_one_plan(plan: Make):
    made = plan("seeds: 0..1\nquick: {seeds: [0]}", "train.steps=50", seeds="[0]", quick=True)
    assert made.given is not None
    assert (made.given.grid or "").endswith("/g.yaml")
    assert replace(made.given, grid=None) == Given(None, ("train.steps=50",), "[0]", quick=True, steps=600)
    assert through_json(made).given == made.given
    assert through_json(plan_from({}, "train", ["train.steps=50"])).given == Given(None, ("train.steps=50",), steps=600)
    assert plan("seeds: 0..1", "train.lr=0.001") == plan("seeds: 0..1", "train.lr=1e-3")


def test_a_plan_of_before_says_nothing_of_what_was_given(plan: Make):
    made = plan("seeds: 0..1")
    data = as_dict(made)
    del data["given"]
    assert from_dict(data) == made
    assert from_dict(data).given is None


def test_stored_ids_are_kept_whatever_todays_would_be(plan: Make):
    data = as_dict(plan("question: x"))
    data["cells"][0]["candidates"][0]["runs"]["0"] = "0123456789abcdef"
    assert from_dict(data).cells[0].candidates[0].run_ids() == {0: "0123456789abcdef"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.pop("cells"),
        lambda data: data.update(cells=3),
        lambda data: data.update(select={"over": 3}),
        lambda data: data.update(given={"overrides": []}),
        lambda data: data.update(given=["train.steps=5"]),
        lambda data: data["cells"][0].pop("name"),
        lambda data: data["cells"][0]["candidates"][0].update(runs={"x": "y"}),
        lambda data: data["cells"][0]["candidates"][0].update(config={"train.lrr": 3}),
        lambda data: data["cells"][0]["candidates"][0].update(config=None),
        lambda data: data.update(seeds=[{}]),
        lambda data: data.update(seeds=[0, 0]),
        lambda data: data.update(seeds=[7]),
        lambda data: data.update(axes=[0.5]),
        lambda data: data.update(axes=["model.dim", "model.dim"]),
        lambda data: data.update(listed=10**400),
        lambda data: data.update(name="\ud800"),
        lambda data: data.update(notes="no list"),
        lambda data: data["cells"][0].update(values={"model.dim": 8}),
        lambda data: data["cells"][0].update(candidates=[]),
        lambda data: data["cells"][0]["candidates"][0].update(values={"train.lr": 0.1}),
    ],
)
def test_a_spoilt_plan_is_an_error_of_one_line(plan: Make, spoil: Any):
    data = as_dict(plan("seeds: 0..1"))
    spoil(data)
    with pytest.raises(ConfigError) as caught:
        from_dict(data, "runs/g/plan.json")
    assert str(caught.value).startswith("runs/g/plan.json: ")
    assert "\n" not in str(caught.value)


def test_something_else_entirely():
    for data in ({}, [], None, 3):
        with pytest.raises(ConfigError, match=r"^plan\.json: this is not a plan"):
            from_dict(data)  # type: ignore[arg-type]


GRID = "grid: {{model.mixer.gate: [{gates}]}}\nselect: {{over: {{train.lr: [{lrs}]}}, seeds: {first}}}\nseeds: {seeds}"


def grid(gates: str = "context, input, none", lrs: str = "1.0, 2.0", first: int = 2, seeds: str = "0..2") -> str:
    return GRID.format(gates=gates, lrs=lrs, first=first, seeds=seeds)


@pytest.mark.parametrize(
    ("new", "text", "needs_extend"),
    [
        ({}, "", False),
        ({"gates": "none, context, input"}, "", False),
        ({"seeds": "0..4"}, "+2 seeds", False),
        ({"seeds": "0..1"}, "−1 seeds", False),
        ({"seeds": "[2, 0]"}, "−1 seeds", False),
        ({"seeds": "1..3"}, "+1 −1 seeds", True),
        ({"seeds": "0..1", "gates": "context"}, "−2 cells, −1 seeds", True),
        ({"seeds": "[7, 8]"}, "+2 −3 seeds", True),
        ({"gates": "context, input"}, "−1 cells", True),
        ({"gates": "context"}, "−2 cells", True),
        ({"lrs": "1.0, 2.0, 3.0"}, "another select", True),
        ({"lrs": "2.0, 1.0"}, "", False),
        ({"first": 1}, "another select", True),
        ({"gates": "context, none", "seeds": "0..3", "lrs": "1.0"}, "−1 cells, +1 seeds, another select", True),
    ],
)
def test_differences(plan: Make, new: dict[str, Any], text: str, needs_extend: bool):
    old = through_json(plan(grid()))
    found = plan_diff(old, plan(grid(**new)))
    assert (str(found), found.needs_extend, bool(found)) == (text, needs_extend, bool(text))


def test_differences_name_the_cells(plan: Make):
    old = plan("grid: {model.mixer.gate: [context, input]}")
    new = plan("grid: {model.mixer.gate: [input, none], model.dim: [32, 64]}")
    found = plan_diff(old, new)
    assert found.added == ("gate=input, dim=64", "gate=none, dim=32", "gate=none, dim=64")
    assert found.removed == ("gate=context",)
    assert str(found) == "+3 −1 cells"


def test_a_changed_base_changes_every_cell(plan: Make):
    text = "grid: {model.mixer.gate: [context, input]}"
    old = through_json(plan(text, "train.steps=50"))
    assert str(plan_diff(old, plan(text, "train.steps=40"))) == "+2 −2 cells (train.steps 50 → 40)"
    assert str(plan_diff(old, plan(text, "train.steps=50", "task.pairs=4", "train.stop_at=0.9"))) == (
        "+2 −2 cells (task.pairs [4, 8, 16] → [4], train.stop_at null → 0.9)"
    )
    assert str(plan_diff(old, plan(text, "train.steps=50", smoke=True))) == (
        "+2 −2 cells (train.batch 64 → 8, eval.every 50 → 1, eval.valid 256 → 8, 1 more)"
    )


def test_cells_that_changed_differently_are_only_counted(plan: Make):
    old = plan("grid: {model.dim: [16, 32]}")
    assert str(plan_diff(old, plan("grid: {model.dim: [64, 128]}"))) == "+2 −2 cells"
    assert str(plan_diff(old, plan("grid: {model.dim: [16, 64]}"))) == "+1 −1 cells (model.dim 32 → 64)"
    other = plan("base: {model.mixer: {name: attention}}\ngrid: {model.dim: [16, 32]}")
    assert str(plan_diff(old, other)) == "+2 −2 cells (model.mixer.name memory → attention)"


def test_only_keys_that_somebody_wrote_are_told(plan: Make):
    """Another task has another length, and gate none is stored as the residual that it is: nobody wrote either."""
    text = "grid: {model.dim: [16, 32]}"
    old = through_json(plan(text))
    assert str(plan_diff(old, plan(text, "task.name=niah"))) == "+2 −2 cells (task.name mqar → niah)"
    whole = plan(f"base: {{task: {{name: niah, preset: mk1, length: 96}}}}\n{text}")
    assert str(plan_diff(old, whole)) == "+2 −2 cells (task.name mqar → niah, task.length 64 → 96)"
    gated = through_json(plan(text, "model.mixer.gate=none"))
    assert str(plan_diff(old, gated)) == "+2 −2 cells (model.mixer.gate context → none)"
    assert str(plan_diff(gated, old)) == "+2 −2 cells (model.mixer.gate none → context)"
    one, other = (through_json(plan(f"grid: {{model.mixer: [{word}]}}")) for word in ("titans", "attention"))
    assert str(plan_diff(one, other)) == "+1 −1 cells (model.mixer.name memory → attention)"
    exam = plan(text, "eval.task={length: 128}", "train.checkpoint_every=5")
    assert str(plan_diff(old, exam)) == "+2 −2 cells (eval.task [] → [length=128])"


def test_a_plan_of_before_is_compared_by_all_its_keys(plan: Make):
    old = replace(plan("grid: {model.dim: [16, 32]}"), written=None)
    other = plan("grid: {model.dim: [16, 32]}", "task.name=niah")
    assert str(plan_diff(old, other)) == "+2 −2 cells (task.name mqar → niah, task.length 64 → 128)"


def test_what_cells_choose_is_not_what_changed(plan: Make):
    text = "grid: {model.dim: [16, 32]}\nselect: {over: {train.lr: [LR]}, seeds: 1}"
    old, new = plan(text.replace("LR", "1.0, 2.0")), plan(text.replace("LR", "3.0, 4.0"), "train.steps=40")
    assert str(plan_diff(old, new)) == "+2 −2 cells (train.steps 600 → 40)"


def test_another_question_another_name_and_spelling_are_no_difference(plan: Make):
    old = plan("question: a\ngrid: {train.lr: [1e-3, 1e-2]}")
    new = plan("question: b\nchanges: {low: {train.lr: 0.001}, high: {}}")
    assert not plan_diff(old, new)


def test_another_select_key_is_another_select_and_no_other_cells(plan: Make):
    old = plan("grid: {model.dim: [16, 32]}\nselect: {over: {train.lr: [1.0, 2.0]}, seeds: 1}")
    new = plan("grid: {model.dim: [16, 32]}\nselect: {over: {train.clip: [1.0, 2.0]}, seeds: 1}")
    assert str(plan_diff(old, new)) == "another select"
    assert str(plan_diff(old, plan("grid: {model.dim: [16, 32]}"))) == "another select"


def test_cells_of_another_version_of_a_formula_are_the_same_cells_trained_anew(plan: Make):
    now = plan("grid: {model.dim: [16, 32]}")
    data = as_dict(now)
    data["cells"][1]["candidates"][0]["runs"]["0"] = "0" * 16
    data["versions"] = {"task.mqar": 3}
    found = plan_diff(from_dict(data), now)
    assert (found.needs_extend, bool(found), found.renewed) == (False, False, ("dim=32",))
    assert renewal(from_dict(data), now).startswith(
        "1 of 2 cells were trained with version 3 of task.mqar, which is 1 now: they are trained again"
    )
    assert renewal(now, now) is None


def test_a_default_that_has_changed_since_is_named_though_nobody_wrote_it(plan: Make):
    now = plan("grid: {model.dim: [16, 32]}")
    data = as_dict(now)
    for cell in data["cells"]:
        cell["candidates"][0]["config"]["train.batch"] = 32
    assert str(plan_diff(from_dict(data), now)) == "+2 −2 cells (train.batch 32 → 64)"


def test_size(plan: Make):
    found = workload(plan(GATING.replace("grid: {", "grid: {model.mixer.connector: [own, shared], ")))
    assert (found.listed, found.cells, found.candidates) == (6, 4, 8)
    assert (found.first, found.runs) == (4 * 2 * 2, 4 * 2 * 2 + 4 * 3)
    assert found.tokens == found.runs * 600 * 64 * 64


def test_size_without_select(plan: Make):
    found = workload(
        plan("base: {train: {steps: 5, batch: 2}}\nzip: {task.length: [64, 128], task.pairs: [4, 8]}\nseeds: 0..2")
    )
    assert (found.listed, found.cells, found.candidates, found.first, found.runs) == (2, 2, 2, 6, 6)
    assert found.tokens == 3 * 5 * 2 * (64 + 128)


def test_size_takes_the_dearest_winner_and_counts_shared_runs_once(plan: Make):
    dear = plan("select: {over: {train.steps: [5, 10]}, seeds: 1}\nseeds: 0..2")
    assert workload(dear).tokens == (5 + 10 + 10 + 10) * 64 * 64
    shared = plan("grid: {model.mixer.aggregate: [grm, residual]}\nselect: {over: {model.mixer.gate: [context, none]}}")
    assert (workload(shared).first, workload(shared).runs) == (2, 2)
    assert tokens(next(iter(shared.first_runs()))) == 600 * 64 * 64

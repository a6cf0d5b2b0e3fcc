"""--only: a plan with some of its cells."""

import re
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.only import narrowed
from mclab.plan.plan_json import as_dict, from_dict

AXES: dict[str, list[Any]] = {"model.mixer.gate": ["context", "input", "none"], "model.dim": [16, 32]}
GRID = {"grid": AXES, "seeds": [0]}
CHANGES = {"changes": {"full": {}, "short": {"train.steps": 50}}, "grid": {"task": [{"name": "mqar"}, {"name": "ar"}]}}


def names(data: dict[str, Any], *only: str) -> list[str]:
    return [cell.name for cell in narrowed(plan_from(data, "g"), only).cells]


def test_of_one_key_either_value_and_of_several_keys_all() -> None:
    assert names(GRID, "gate=none", "model.mixer.gate=input") == [
        "gate=input, dim=16", "gate=input, dim=32", "gate=none, dim=16", "gate=none, dim=32",
    ]  # fmt: skip
    assert names(GRID, "gate=none", "dim=32") == ["gate=none, dim=32"]


def test_a_key_that_only_a_mapping_varies_and_the_name_of_a_change() -> None:
    assert len(names(CHANGES)) == 4
    assert len(names(CHANGES, "task.name=ar")) == 2
    assert len(names(CHANGES, "change=short", "task.name=mqar")) == 1


def test_the_plan_is_the_narrower_grids_own_and_says_so() -> None:
    plan = narrowed(plan_from(GRID, "g"), ["gate=none"])
    assert plan.notes[-1] == "--only gate=none: 2 of 6 cells"
    assert plan.given is not None
    assert plan.given.only == ("gate=none",)
    again = from_dict(as_dict(plan))
    assert (again, again.given) == (plan, plan.given)
    alone = plan_from({**GRID, "grid": {**AXES, "model.mixer.gate": ["none"]}}, "g")
    assert [cell.candidates for cell in plan.cells] == [cell.candidates for cell in alone.cells]


def test_without_it_a_stored_plan_is_as_it_was() -> None:
    plan = plan_from(GRID, "g")
    assert narrowed(plan, []) is plan
    assert "only" not in as_dict(plan)["given"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["gate"], "--only: gate: must be key=value"),
        (
            ["gate=inputs"],
            (
                "--only: gate=inputs: no cell has model.mixer.gate inputs; the values in the cells are context, input, "
                "none"
            ),
        ),
        (["gate=none,task.name=mqar"], "repeat the option for several: --only gate=none --only task.name=mqar"),
        (["gats=none"], "--only: gats is not a key of this grid"),
        (["model.mixer.gats=none"], "did you mean model.mixer.gate?"),
        (["change=full"], "no cell has change full; the values in the cells are none"),
    ],
)
def test_a_key_or_a_value_that_is_not_there(only: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        names(GRID, *only)


def test_values_that_no_cell_has_together() -> None:
    with pytest.raises(ConfigError, match="no cell has all of these"):
        names({"runs": [{"model.dim": 16}, {"model.dim": 32, "train.steps": 9}]}, "dim=16", "steps=9")

"""The reduced form of a grid: what its quick block changes, and what is found wrong with it before it is wanted."""

import pytest

from mclab.plan.plan_json import as_dict, from_dict
from mclab.plan.quick import NOTE
from tests.plan.conftest import Fault, Make
from tests.plan.test_grid import names

GRID = """
question: x
base:
  task: {length: 128, pairs: [8, 16]}
  model: {dim: 64, mixer: {segment: 16}}
  train.steps: 6000
grid: {model.mixer.gate: [context, input, none]}
zip: {train.batch: [32, 64], train.weight_decay: [0.1, 0.2]}
select: {over: {train.lr: [1e-3, 1e-2]}, seeds: 2}
exclude: [{model.mixer.gate: none}]
seeds: 0..4
"""
QUICK = """
quick:
  base: {train: {steps: 100}, task.length: 64}
  grid: {model.mixer.gate: [context, none]}
  zip: null
  exclude: null
  seeds: [0]
"""


def test_a_quick_block_changes_nothing_unless_it_is_asked_for(plan: Make):
    full = plan(GRID)
    assert plan(GRID + QUICK) == full
    assert (full.name, len(full.cells), full.seeds) == ("g", 4, (0, 1, 2, 3, 4))


def test_the_base_is_laid_over_and_the_rest_replaced(plan: Make):
    small = plan(GRID + QUICK, quick=True)
    assert small.name == "g-quick"
    assert small.question == "x"
    assert names(small) == ["gate=context", "gate=none"]
    assert small.seeds == (0,)
    run = next(small.first_runs())
    assert (run.train.steps, run.task.length, run.task.pairs) == (100, 64, (8, 16))
    assert (run.model.dim, run.model.mixer.segment, run.train.batch) == (64, 16, 64)
    assert small.notes == (NOTE, "select.seeds: 2 is lowered to 1, which is the number of seeds")
    assert from_dict(as_dict(small)) == small


def test_a_mapping_with_a_name_replaces_the_one_in_the_base(plan: Make):
    text = f"{GRID}quick: {{base: {{model.mixer: {{name: attention, window: 8}}}}, grid: {{model.dim: [8, 16]}}}}"
    run = next(plan(text, quick=True).first_runs())
    assert (run.model.mixer.name, run.model.mixer.window) == ("attention", 8)


@pytest.mark.parametrize(
    ("block", "cells"),
    [
        ("changes: {full: {}, small: {model.dim: 8}}, grid: null, zip: null", ["full", "small"]),
        (
            "changes: {full: {}, small: {model.heads: 2}}, grid: {model.dim: [8]}, zip: null",
            ["full, dim=8", "small, dim=8"],
        ),
        ("runs: [{model.dim: 8}, {model.dim: 16}]", ["dim=8", "dim=16"]),
        ("grid: null, zip: null", ["base"]),
        ("grid: {model.dim: [8, 16]}, zip: null", ["dim=8", "dim=16"]),
    ],
)
def test_rows_of_another_kind_take_the_place_of_the_grids_own(plan: Make, block: str, cells: list[str]):
    assert names(plan(f"{GRID}quick: {{{block}, exclude: null}}", quick=True)) == cells


def test_command_line_and_smoke_stand_above_it(plan: Make):
    small = plan(GRID + QUICK, "train.steps=50", quick=True, seeds="3..4")
    assert small.seeds == (3, 4)
    assert next(small.first_runs()).train.steps == 50
    assert next(plan(GRID + QUICK, quick=True, smoke=True).first_runs()).train.steps == 2


def test_no_quick_block(fault: Fault):
    assert fault(GRID, quick=True) == (
        "g.yaml: --quick: this grid has no quick block; add one, e.g. quick: {base: {train.steps: 100}, seeds: [0]}, "
        "or leave --quick out"
    )


KEYS = "base, grid, zip, changes, runs, when, exclude, select, seeds"


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("quick:", f"g.yaml:12: quick: must be a mapping with some of the keys {KEYS}, got null"),
        ("quick: {}", f"g.yaml:12: quick: must be a mapping with some of the keys {KEYS}, got {{}}"),
        ("quick: [a]", f"g.yaml:12: quick: must be a mapping with some of the keys {KEYS}, got [a]"),
        ("quick:\n  sedes: [0]", "g.yaml:13: quick.sedes: unknown key; did you mean seeds?"),
        ("quick:\n  question: y", f"g.yaml:13: quick.question: unknown key; the keys of quick are {KEYS}"),
        ("quick:\n  train: {steps: 3}", "g.yaml:13: quick.train: unknown key; it belongs under quick.base"),
        ("quick: {base: 3}", "g.yaml:12: quick.base: must be a mapping of keys to values, got 3"),
        ("quikc: {}", "g.yaml:12: quikc: unknown key; did you mean quick?"),
    ],
)
def test_what_may_not_stand_there(fault: Fault, block: str, message: str, quick: bool):
    assert fault(GRID + block, quick=quick) == message


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            "quick:\n  base:\n    train: {stpes: 3}",
            "g.yaml:14: train.stpes: unknown key; did you mean train.steps?",
        ),
        ("quick:\n  seeds: 3", "g.yaml:13: seeds: 3 could mean seed 3 or 3 seeds; write [3] or 0..2"),
        (
            "quick:\n  grid:\n    model.mixer.gate: [context, inptu]",
            'g.yaml:14: model.mixer.gate: must be input | context | none, got "inptu"; did you mean input? '
            "(cell gate=inptu, batch=32, weight_decay=0.1 and 1 more)",
        ),
        (
            "quick: {base: {task.length: 32}}",
            (
                "g.yaml:4: task.pairs: 16 pairs and their queries need 4 * 16 = 64 tokens, but length is 32; take "
                "length 64 or at most 8 pairs"
            ),
        ),
    ],
)
def test_a_fault_in_it_is_found_whether_it_is_chosen_or_not(fault: Fault, block: str, message: str):
    assert fault(GRID + block, quick=True) == message
    assert fault(GRID + block) == f"{message} (in the quick form)"


def test_a_select_of_its_own_is_held_to_its_own_seeds(fault: Fault):
    block = "quick: {select: {over: {train.lr: [1e-3]}, seeds: 2}, seeds: [0]}"
    assert fault(GRID + block, quick=True) == (
        "g.yaml:12: select.seeds: the choice cannot be made on 2 seeds, because the grid has 1; take 1"
    )

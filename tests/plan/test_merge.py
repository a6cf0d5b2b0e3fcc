"""Equal values and equal cells run once, and the plan says so."""

import pytest

from tests.plan.conftest import Make
from tests.plan.test_grid import names, values


@pytest.mark.parametrize(
    ("axis", "count", "notes"),
    [
        ("model.mixer.gate: [none, none, context]", 2, ["grid: model.mixer.gate lists none twice; it runs once"]),
        ("train.lr: [1e-3, 0.001, 1.0E-3]", 1, ["grid: train.lr lists 0.001 twice; it runs once"] * 2),
        ("train.lr: [1, 1.0]", 1, ["grid: train.lr lists 1.0 twice (once as 1); it runs once"]),
        ("task.pairs: [4, [4]]", 1, ["grid: task.pairs lists [4] twice (once as 4); it runs once"]),
        ("task.pairs: [[4, 8], [8, 4]]", 1, ["grid: task.pairs lists [8, 4] twice (once as [4, 8]); it runs once"]),
        ("model.mixer.qk_norm: [true, false, True]", 2, ["grid: model.mixer.qk_norm lists true twice; it runs once"]),
        (
            "model.mixer: [{name: memory, k: 3}, {k: 3, name: memory}]",
            1,
            ["grid: model.mixer lists {k: 3, name: memory} twice (once as {name: memory, k: 3}); it runs once"],
        ),
    ],
)
def test_equal_values_of_an_axis_run_once_and_are_noted(plan: Make, axis: str, count: int, notes: list[str]):
    found = plan(f"grid: {{{axis}}}")
    assert len(found.cells) == found.listed == count
    assert list(found.notes) == notes


def test_equal_pairs_of_a_zip_run_once_and_are_noted(plan: Make):
    found = plan("zip: {task.length: [64, 128, 64], task.pairs: [4, 4, [4]]}")
    assert len(found.cells) == 2
    assert found.notes == ("zip: lists task.length 64, task.pairs [4] twice; it runs once",)


def test_cells_that_are_the_same_are_merged_and_noted(plan: Make):
    found = plan("grid: {model.mixer.gate: [context, none, input], model.mixer.connector: [own, shared]}")
    assert names(found) == ["gate=context, connector=own", "gate=context, connector=shared", "gate=none", "gate=input"]
    assert values(found)[2] == {"model.mixer.gate": "none"}
    assert found.listed == 6
    assert found.notes == (
        "6 cells, 4 distinct: gate=none, connector=shared is the same as gate=none, connector=own; "
        "gate=input, connector=shared is the same as gate=input, connector=own",
    )


def test_excluded_and_merged_cells_are_counted_from_the_same_number(plan: Make):
    text = "grid: {model.mixer.gate: [context, none, input], model.mixer.connector: [own, shared]}\n"
    found = plan(f"{text}exclude: [{{model.mixer.gate: input}}]")
    merged = "6 cells, 2 excluded, 3 distinct: gate=none, connector=shared is the same as gate=none, connector=own"
    assert (found.listed, len(found.cells), found.notes) == (6, 3, (merged,))


def test_changes_without_an_empty_one_say_what_the_baseline_is(plan: Make):
    found = plan("changes: {a: {model.dim: 16}, b: {model.dim: 64}}")
    assert found.notes == ("the baseline is `a`, the first change; add `base: {}` on top to compare with the base",)
    assert plan("changes: {b: {model.dim: 64}, a: {}}").notes == ()
    assert plan("runs: [{model.dim: 16}, {model.dim: 64}]").notes == ()


def test_merged_rows_of_changes_are_named(plan: Make):
    found = plan("changes: {full: {}, residual: {model.mixer.aggregate: residual}, no gate: {model.mixer.gate: none}}")
    assert names(found) == ["full", "residual"]
    assert found.notes == ("3 cells, 2 distinct: no gate is the same as residual",)


def test_a_long_list_of_merged_cells_is_cut(plan: Make):
    found = plan("base: {model.mixer.gate: none}\ngrid: {model.mixer.k: [1, 2, 3, 4, 5, 6]}")
    assert names(found) == ["k=1"]
    assert found.notes[0].startswith("6 cells, 1 distinct: k=2 is the same as k=1; ")
    assert found.notes[0].endswith("; and 2 more")


def test_oddities_are_warnings_each_once(plan: Make):
    found = plan("grid: {model.mixer.segment: [8, 64], model.dim: [16, 32], train.lr: [1.0, 2.0]}")
    assert found.warnings == ("model.mixer.segment: 64 is not below task.length 64, so that nothing is ever cached",)

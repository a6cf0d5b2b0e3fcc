"""base, overrides, rows, when, exclude, inert keys, merging, selection, seeds: each where the others expect it."""

import pytest

from mclab.plan.dotted import within
from tests.plan.conftest import Fault, Make
from tests.plan.test_grid import names, run_of, values


def test_overrides_lie_under_the_rows(plan: Make):
    found = plan("base: {model.dim: 16, train.lr: 1e-3}\ngrid: {model.layers: [1, 2]}", "model.dim=64")
    assert [(run_of(c).model.dim, run_of(c).model.layers, run_of(c).train.lr) for c in found.cells] == [
        (64, 1, 0.001),
        (64, 2, 0.001),
    ]


def test_a_key_exists_only_where_its_condition_holds(plan: Make):
    text = "grid: {model.mixer.aggregate: [grm, ssc], model.mixer.segment: [4, 16]}\n"
    found = plan(
        f"base: {{model.mixer.segment: 8}}\n{text}when: {{model.mixer.segment: {{model.mixer.aggregate: ssc}}}}"
    )
    assert names(found) == ["aggregate=grm", "aggregate=ssc, segment=4", "aggregate=ssc, segment=16"]
    assert [run_of(c).model.mixer.segment for c in found.cells] == [8, 4, 16]  # type: ignore[union-attr]
    assert found.notes == ("4 cells, 3 distinct: aggregate=grm, segment=16 is the same as aggregate=grm, segment=4",)


def test_when_makes_room_for_a_mixer_that_lacks_the_key(plan: Make, fault: Fault):
    text = "grid: {model.mixer: [{name: memory}, {name: attention}], model.mixer.gate: [context, input]}"
    assert "is a key of mixer memory" in fault(text)
    found = plan(f"{text}\nwhen: {{model.mixer.gate: {{model.mixer.name: memory}}}}")
    assert values(found) == [
        {"model.mixer": {"name": "memory"}, "model.mixer.gate": "context"},
        {"model.mixer": {"name": "memory"}, "model.mixer.gate": "input"},
        {"model.mixer": {"name": "attention"}},
    ]


def test_when_with_several_allowed_values_and_several_keys(plan: Make):
    found = plan(
        """
        grid: {model.mixer.aggregate: [grm, soup, ssc], model.dim: [16, 32], train.batch: [32, 64]}
        when: {train.batch: {model.mixer.aggregate: [soup, ssc], model.dim: 32}}
        """
    )
    with_batch = [cell.values for cell in found.cells if "train.batch" in cell.values]
    assert {(v["model.mixer.aggregate"], v["model.dim"]) for v in with_batch} == {("soup", 32), ("ssc", 32)}
    assert len(found.cells) == 4 + 2 * 2


def test_when_looks_again_after_a_key_has_gone(plan: Make):
    """gate exists for grm alone, connector for gate input alone: without gate there is no connector either."""
    found = plan(
        """
        base: {model.mixer: {gate: none}}
        grid:
          model.mixer.aggregate: [soup, grm]
          model.mixer.gate: [input]
          train.batch: [32, 64]
        when:
          train.batch: {model.mixer.gate: input}
          model.mixer.gate: {model.mixer.aggregate: grm}
        """
    )
    assert names(found) == [
        "aggregate=soup",
        "aggregate=grm, gate=input, batch=32",
        "aggregate=grm, gate=input, batch=64",
    ]


def test_when_goes_before_exclude(plan: Make):
    """A cell that a dropped key would have excluded stays."""
    found = plan(
        """
        grid: {model.mixer.aggregate: [grm, ssc], model.mixer.k: [1, 3]}
        when: {model.mixer.k: {model.mixer.aggregate: ssc}}
        exclude: [{model.mixer.k: 1}]
        """
    )
    assert names(found) == ["aggregate=grm", "aggregate=ssc, k=3"]


def test_exclude_goes_before_the_rules(plan: Make, fault: Fault):
    text = "base: {task.length: 32}\ngrid: {task.pairs: [4, 16], model.dim: [16, 32]}\n"
    assert "16 pairs and their queries need" in fault(text)
    found = plan(f"{text}exclude: [{{task.pairs: 16}}]")
    assert names(found) == ["pairs=4, dim=16", "pairs=4, dim=32"]


def test_exclude_takes_every_cell_that_matches_all_of_an_item(plan: Make):
    grid = "grid: {model.dim: [16, 32], task.pairs: [4, 16]}\n"
    assert names(plan(f"{grid}exclude: [{{model.dim: 16, task.pairs: 16}}]")) == [
        "dim=16, pairs=4",
        "dim=32, pairs=4",
        "dim=32, pairs=16",
    ]
    assert names(plan(f"{grid}exclude: [{{model: {{dim: 16}}}}, {{task.pairs: [[16], [8]]}}]")) == ["dim=32, pairs=4"]


def test_exclude_sees_defaults_and_takes_lists_of_pairs_as_mixes(plan: Make):
    grid = "grid: {task.pairs: [[4, 8], 4, 8]}\n"
    assert names(plan(f"{grid}exclude: [{{task.pairs: [8, 4]}}]")) == ["pairs=4", "pairs=8"]
    assert names(plan(f"{grid}exclude: [{{task.length: 64, task.pairs: 4}}]")) == ["pairs=[4, 8]", "pairs=8"]


def test_exclude_sees_what_the_author_wrote_not_what_it_comes_to(plan: Make):
    found = plan("grid: {model.mixer.gate: [context, none]}\nexclude: [{model.mixer.aggregate: residual}]")
    assert names(found) == ["gate=context", "gate=none"]
    assert found.warnings == ("exclude: {model.mixer.aggregate: residual} matches no cell",)


def test_exclude_knows_which_mixer_a_cell_has(plan: Make):
    grid = "grid: {model.mixer: [{name: memory}, {name: attention}], train.lr: [1.0, 2.0]}\n"
    assert len(plan(f"{grid}exclude: [{{model.mixer.gate: context, train.lr: 1}}]").cells) == 3
    assert len(plan(f"{grid}exclude: [{{model.mixer: {{name: attention}}}}]").cells) == 2


def test_excluding_the_first_cell_moves_the_baseline_and_says_so(plan: Make):
    found = plan("grid: {model.dim: [16, 32, 64]}\nexclude: [{model.dim: 16}]")
    assert names(found) == ["dim=32", "dim=64"]
    assert found.notes == (
        "exclude removes the first cell, so that the baseline is dim=32",
        "3 cells, 1 excluded, 2 distinct",
    )


def test_a_condition_on_a_key_that_nothing_varies_is_a_warning(plan: Make):
    found = plan("grid: {model.dim: [16, 32]}\nwhen: {model.mixer.k: {model.mixer.aggregate: ssc}}")
    assert found.warnings == ("when: model.mixer.k is not varied here, so its condition changes nothing",)


def test_a_condition_that_never_holds_is_a_warning(plan: Make):
    when = "when: {model.mixer.k: {model.mixer.aggregate: ssc}}"
    told = (
        "when: model.mixer.k: the condition {model.mixer.aggregate: ssc} holds in no cell, so that model.mixer.k "
        "is never varied"
    )
    assert plan(f"grid: {{model.mixer.k: [1, 2], model.dim: [16, 32]}}\n{when}").warnings == (told,)
    assert plan(f"select: {{over: {{model.mixer.k: [1, 2]}}}}\n{when}").warnings == (told,)
    assert plan(f"grid: {{model.mixer.k: [1, 2], model.mixer.aggregate: [grm, ssc]}}\n{when}").warnings == ()
    chosen = "grid: {model.mixer.aggregate: [grm, ssc]}\nselect: {over: {model.mixer.k: [1, 2]}}"
    assert plan(f"{chosen}\n{when}").warnings == ()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "train.lr: {train.lr: 0.1}",
            "train.lr: the condition of this key depends on the key itself; name another key, or use exclude",
        ),
        (
            "train.lr: {model.dim: 16}, model.dim: {train.lr: 0.1}",
            (
                "train.lr: the conditions depend on each other in a circle (train.lr needs model.dim needs train.lr); "
                "remove one of them"
            ),
        ),
        (
            "train.clip: {train.lr: 0.1}, train.lr: {model.dim: 16}, model.dim: {model.layers: 1, train.lr: 0.1}",
            (
                "train.lr: the conditions depend on each other in a circle (train.lr needs model.dim needs train.lr); "
                "remove one of them"
            ),
        ),
    ],
)
def test_conditions_in_a_circle_are_refused(fault: Fault, rules: str, message: str):
    assert fault(f"grid: {{train.lr: [0.1, 0.2]}}\nwhen: {{{rules}}}") == f"g.yaml:2: when: {message}"


def test_inert_keys_leave_the_cells_values(plan: Make):
    found = plan("grid: {model.mixer.aggregate: [none, grm], model.mixer.segment: [8, 16]}")
    assert values(found)[0] == {"model.mixer.aggregate": "none"}
    assert names(found) == ["aggregate=none", "aggregate=grm, segment=8", "aggregate=grm, segment=16"]


def test_a_cell_in_which_every_varied_key_is_inert_keeps_them(plan: Make):
    found = plan("base: {model.mixer.gate: none}\ngrid: {model.mixer.connector: [shared, own]}")
    assert values(found) == [{"model.mixer.connector": "shared"}]
    assert found.notes == ("2 cells, 1 distinct: connector=own is the same as connector=shared",)


def test_cells_merge_before_they_choose(plan: Make):
    found = plan(
        """
        grid: {model.mixer.gate: [none, input], model.mixer.connector: [own, shared]}
        select: {over: {train.lr: [1e-3, 1e-2]}}
        seeds: 0..2
        """
    )
    assert names(found) == ["gate=none", "gate=input"]
    assert len({i for cell in found.cells for c in cell.candidates for i in c.run_ids().values()}) == 2 * 2 * 3


def test_candidates_that_are_the_same_run_are_one(plan: Make):
    found = plan(
        """
        grid: {model.mixer.aggregate: [grm, ssc]}
        select: {over: {model.mixer.k: [1, 2], train.lr: [1e-3, 1e-2]}}
        """
    )
    grm, ssc = found.cells
    assert [c.values for c in grm.candidates] == [{"train.lr": 0.001}, {"train.lr": 0.01}]
    assert len(ssc.candidates) == 4


def test_cells_that_share_only_some_candidates_stay_apart(plan: Make):
    found = plan(
        """
        grid: {model.mixer.aggregate: [grm, residual]}
        select: {over: {model.mixer.gate: [context, none]}}
        """
    )
    assert names(found) == ["aggregate=grm", "aggregate=residual"]
    assert [len(cell.candidates) for cell in found.cells] == [2, 1]


def test_a_key_that_matters_to_one_candidate_stays(plan: Make):
    found = plan(
        """
        grid: {model.mixer.k: [1, 3]}
        select: {over: {model.mixer.aggregate: [ssc, grm]}}
        """
    )
    assert names(found) == ["k=1", "k=3"]


def test_when_applies_to_selected_keys_too(plan: Make):
    found = plan(
        """
        grid: {model.mixer: [{name: memory}, {name: attention}]}
        select: {over: {model.mixer.segment: [4, 8]}}
        when: {model.mixer.segment: {model.mixer.name: memory}}
        """
    )
    assert [len(cell.candidates) for cell in found.cells] == [2, 1]
    assert found.warnings == ()


def test_a_path_lies_in_a_mapping_not_in_a_word_that_begins_alike():
    assert within("model.mixer.gate", "model.mixer")
    assert within("model.mixer", "model.mixer")
    assert not within("model.mixers", "model.mixer")
    assert not within("model", "model.mixer")

"""What each part of a grid means."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.model import AttentionMixer
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.plan.grid import load_plan, plan_from
from mclab.plan.plan import Cell, Plan, Select
from tests.plan.conftest import Make

GATING = """
    question: Does a cached memory need a gate that sees the segment?
    base:
      task:  {name: mqar, vocab: 64, length: 64, pairs: [4, 8, 16]}
      model:
        dim: 32
        layers: 2
        mixer: {name: memory, memory: linear, segment: 8, aggregate: grm, gate: context, connector: own, init: restart}
      train: {steps: 600, batch: 64, lr: 1.0e-2}
    grid: {model.mixer.gate: [context, input, none]}
    select: {over: {train.lr: [3.0e-3, 1.0e-2]}, by: valid.accuracy, seeds: 2}
    seeds: 0..4
    """


def run_of(cell: Cell) -> RunConfig:
    return next(iter(cell.candidates[0].runs.values()))


def names(plan: Plan) -> list[str]:
    return [cell.name for cell in plan.cells]


def values(plan: Plan) -> list[dict[str, Any]]:
    return [cell.values for cell in plan.cells]


def test_the_example_of_the_design(plan: Make):
    found = plan(GATING)
    assert found.name == "g"
    assert found.question == "Does a cached memory need a gate that sees the segment?"
    assert found.axes == ("model.mixer.gate",)
    assert names(found) == ["gate=context", "gate=input", "gate=none"]
    assert values(found)[2] == {"model.mixer.gate": "none"}
    assert found.select == Select(("train.lr",), "valid.accuracy", 2)
    assert found.seeds == (0, 1, 2, 3, 4)
    assert (found.notes, found.warnings, found.named, found.listed) == ((), (), False, 3)
    for cell in found.cells:
        assert [candidate.values for candidate in cell.candidates] == [{"train.lr": 0.003}, {"train.lr": 0.01}]
        for candidate in cell.candidates:
            assert list(candidate.runs) == [0, 1, 2, 3, 4]
            assert all(run.seed == seed for seed, run in candidate.runs.items())


def test_ids_of_a_grid_stay_what_they_are(plan: Make):
    """Golden, as in tests/config/test_run.py, through the whole of the plan."""
    cell = plan(GATING).cells[2]
    assert cell.candidates[0].run_ids()[4] == "e68990bca445220a"
    assert cell.candidates[1].run_ids()[0] == "05a29a1e5f457405"


def test_every_run_is_canonical_and_the_cell_keeps_the_authors_word(plan: Make):
    cell = plan(GATING).cells[2]
    mixer: Any = run_of(cell).model.mixer
    assert (mixer.aggregate, mixer.gate) == ("residual", "context")
    assert cell.values == {"model.mixer.gate": "none"}
    for run in cell.candidates[0].runs.values():
        assert canonical(run) is run


def test_no_rows_at_all_is_one_run(plan: Make):
    for found in (plan("question: x"), plan_from({}, "train")):
        assert names(found) == ["base"]
        assert run_of(found.cells[0]) == canonical(RunConfig())
        assert (found.axes, found.seeds, found.select) == ((), (0,), None)


def test_nested_and_dotted_keys_are_the_same(plan: Make):
    nested = plan(
        """
        base: {model: {dim: 64, mixer: {segment: 16}}, train: {lr: 1e-3}}
        grid: {model: {mixer: {gate: [context, input]}}, train: {batch: [32, 64]}}
        """
    )
    dotted = plan(
        """
        base: {model.dim: 64, model.mixer.segment: 16, train.lr: 0.001}
        grid: {model.mixer.gate: [context, input], train.batch: [32, 64]}
        """
    )
    mixed = plan(
        """
        base: {model: {dim: 64, mixer.segment: 16}, train.lr: 1.0e-3}
        grid: {model: {mixer.gate: [context, input]}, train.batch: [32, 64]}
        """
    )
    assert nested == dotted == mixed


def test_grid_is_cartesian_with_the_first_axis_outermost(plan: Make):
    found = plan("grid: {model.dim: [16, 32], model.mixer.gate: [context, input, none]}")
    expected = [{"model.dim": d, "model.mixer.gate": g} for d, g in product([16, 32], ["context", "input", "none"])]
    assert values(found) == expected
    assert names(found)[1] == "dim=16, gate=input"


def test_zip_pairs_and_multiplies_with_grid(plan: Make):
    found = plan("zip: {task.length: [64, 128, 256], task.pairs: [4, 8, 16]}")
    assert [(run_of(c).task.length, run_of(c).task.pairs) for c in found.cells] == [
        (64, (4,)),
        (128, (8,)),
        (256, (16,)),
    ]
    both = plan(
        """
        zip: {task.length: [64, 128], task.pairs: [4, 8]}
        grid: {model.dim: [16, 32]}
        """
    )
    assert both.axes == ("model.dim", "task.length", "task.pairs")
    assert names(both) == [f"dim={d}, length={n}, pairs={p}" for d in (16, 32) for n, p in ((64, 4), (128, 8))]


def test_runs_are_as_listed(plan: Make):
    found = plan("runs: [{model.dim: 16}, {model.dim: 32, train.lr: 3e-3}, {}, {model: {dim: 64}, train: {lr: 1e-3}}]")
    assert found.axes == ("model.dim", "train.lr")
    assert not found.named
    assert names(found) == ["dim=16", "dim=32, lr=0.003", "base", "dim=64, lr=0.001"]
    assert values(found)[1] == {"model.dim": 32, "train.lr": 0.003}
    assert [(run_of(c).model.dim, run_of(c).train.lr) for c in found.cells] == [
        (16, 0.01),
        (32, 0.003),
        (32, 0.01),
        (64, 0.001),
    ]


def test_changes_are_one_at_a_time_from_base(plan: Make):
    found = plan(
        """
        base: {model: {mixer: {segment: 16, connector: shared}}}
        changes:
          full: {}
          "- context": {model.mixer.gate: input}
          wide: {model: {dim: 64}}
          linear attention: {model.mixer: {name: memory, memory: linear, aggregate: none}}
          softmax: {model: {mixer: {name: attention}}}
          8: {model.mixer.segment: 8}
        """
    )
    assert found.named
    assert names(found) == ["full", "- context", "wide", "linear attention", "softmax", "8"]
    assert found.axes == ("model.mixer.gate", "model.dim", "model.mixer", "model.mixer.segment")
    base = {"segment": 16, "connector": "shared"}
    expected = [
        {"model": {"mixer": base}},
        {"model": {"mixer": {**base, "gate": "input"}}},
        {"model": {"dim": 64, "mixer": base}},
        {"model": {"mixer": {"aggregate": "none"}}},
        {"model": {"mixer": {"name": "attention"}}},
        {"model": {"mixer": {**base, "segment": 8}}},
    ]
    assert [run_id(run_of(cell)) for cell in found.cells] == [run_id(parse_run(data)) for data in expected]
    assert values(found)[:2] == [{}, {"model.mixer.gate": "input"}]


def test_an_empty_row_is_the_base(plan: Make):
    found = plan("changes: {full: , wide: {model.dim: 64}}")
    assert run_of(found.cells[0]) == canonical(RunConfig())


@pytest.mark.parametrize(
    "text",
    [
        "grid: {model.mixer: [{name: memory}, {name: attention, window: 16}]}",
        "changes: {full: {}, swa: {model.mixer: {name: attention, window: 16}}}",
        "runs: [{}, {model.mixer: {name: attention, window: 16}}]",
        "zip: {model.mixer: [{name: memory}, {name: attention, window: 16}], train.lr: [1e-2, 1e-2]}",
    ],
)
def test_a_mapping_replaces_the_mixer_as_a_whole(plan: Make, text: str):
    found = plan(f"base: {{model.mixer: {{segment: 16, gate: input}}}}\n{text}")
    mixer = run_of(found.cells[-1]).model.mixer
    assert mixer == AttentionMixer(window=16)
    assert found.warnings == ()


def test_a_mapping_without_a_name_is_a_memory_and_a_warning(plan: Make):
    found = plan("base: {model.mixer.segment: 16}\nchanges: {a: {}, b: {model.mixer: {gate: input}}}")
    mixer: Any = run_of(found.cells[1]).model.mixer
    assert (mixer.name, mixer.segment, mixer.gate) == ("memory", 8, "input")
    assert len(found.warnings) == 1
    assert "{gate: input} replaces the whole mapping" in found.warnings[0]


def test_a_mapping_for_the_task_replaces_it_as_a_whole(plan: Make):
    found = plan("base: {task: {length: 128, pairs: 4}}\nruns: [{}, {task: {name: mqar, length: 256}}]")
    assert run_of(found.cells[1]).task.pairs == RunConfig().task.pairs
    assert run_of(found.cells[1]).task.length == 256


def test_a_mapping_goes_before_the_keys_in_it_whatever_their_order(plan: Make):
    found = plan("grid: {model.mixer.segment: [4, 16], model.mixer: [{name: memory, gate: input}]}")
    assert [run_of(c).model.mixer for c in found.cells] == [
        canonical(parse_run({"model": {"mixer": {"gate": "input", "segment": s}}})).model.mixer for s in (4, 16)
    ]


def test_an_axis_over_a_section_sets_its_keys_together(plan: Make):
    found = plan("base: {model.layers: 3}\ngrid: {model: [{dim: 16, heads: 2}, {dim: 32, heads: 4}]}")
    assert [(r.model.dim, r.model.heads, r.model.layers) for r in map(run_of, found.cells)] == [(16, 2, 3), (32, 4, 3)]


def test_window_null(plan: Make):
    found = plan("base: {model.mixer: {name: attention, window: null}}\ngrid: {model.mixer.window: [null, 16]}")
    assert names(found) == ["window=null", "window=16"]
    assert [run_of(c).model.mixer for c in found.cells] == [AttentionMixer(), AttentionMixer(window=16)]


def test_merge_keys_in_a_grid(plan: Make):
    found = plan(
        """
        runs:
        - &small {model.dim: 16, train.lr: 1e-3}
        - {<<: *small, model.dim: 32}
        """
    )
    assert values(found) == [{"model.dim": 16, "train.lr": 0.001}, {"model.dim": 32, "train.lr": 0.001}]


def test_axes_with_the_same_last_word_are_named_in_full(plan: Make):
    found = plan("grid: {task.name: [mqar], model.mixer.name: [memory, attention]}")
    assert names(found) == [
        "task.name=mqar, model.mixer.name=memory",
        "task.name=mqar, model.mixer.name=attention",
    ]


def test_names_are_the_files(tmp_path: Path):
    path = tmp_path / "my.gating.yaml"
    path.write_text("seeds: 0..1")
    assert load_plan(str(path)).name == "my.gating"


def test_first_runs(plan: Make):
    found = plan(GATING)
    assert [(run.train.lr, run.seed) for run in found.first_runs()] == [
        (lr, s) for lr in (3e-3, 1e-2) for s in (0, 1)
    ] * 3
    assert len(list(plan("seeds: 0..4").first_runs())) == 5


def test_changes_are_crossed_with_grid_and_zip(plan: Make):
    """Changes stand side by side in every cell of the product, under an axis of their own."""
    text = """
changes:
  cached: {}
  attention: {model.mixer: {name: attention}}
grid: {model.dim: [8, 16]}
"""
    made = plan(text)
    assert names(made) == ["cached, dim=8", "attention, dim=8", "cached, dim=16", "attention, dim=16"]
    assert made.axes == ("change", "model.dim")
    assert made.cells[1].values == {"change": "attention", "model.dim": 8}
    mixers = [next(iter(cell.candidates[0].runs.values())).model.mixer.name for cell in made.cells]
    assert mixers == ["memory", "attention"] * 2

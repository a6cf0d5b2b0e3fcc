"""A grid's paper block: what it may say, what is wrong with it, and that it changes no run."""

import json

import pytest

from mclab.plan.paper import Column, PaperRow
from mclab.plan.plan_json import as_dict, from_dict
from tests.plan.conftest import Fault, Make

GRID = """
base: {model: {dim: 8, layers: 1}, train.steps: 4}
changes:
  plain: {model.mixer.aggregate: none}
  GRM: {}
  GRM - gating: {model.mixer.gate: none}
grid: {task.pairs: [[1], [2]]}
seeds: 0..1
quick: {changes: {GRM: {}, small: {model.layers: 2}}}
"""
PAPER = """
paper:
  source: Somebody, table 5
  columns:
    retrieval: {where: {task.name: [mqar, ar]}, margin: 0.02}
    language: {where: {task.pairs: [[1]], model.dim: 8}, metric: bits, unit: perplexity}
  rows:
    plain: {figures: [31.8, 13.7]}
    GRM: {against: plain, figures: {retrieval: 40.5}}
    GRM - gating: {against: [GRM, plain], figures: [worse, null]}
    small:
"""


def with_paper(old: str, new: str) -> str:
    assert PAPER.count(old) == 1
    return GRID + PAPER.replace(old, new)


def test_it_is_read_and_kept(plan: Make) -> None:
    made = plan(GRID + PAPER)
    assert made.paper is not None
    assert made.paper.source == "Somebody, table 5"
    assert made.paper.columns == (
        Column("retrieval", {"task.name": ("mqar", "ar")}, "accuracy", "up", "%", 0.02),
        Column("language", {"task.pairs": ((1,),), "model.dim": (8,)}, "bits", "down", "perplexity", None),
    )
    assert made.paper.rows == (
        PaperRow("plain", (31.8, 13.7)),
        PaperRow("GRM", (40.5, None), ("plain",)),
        PaperRow("GRM - gating", ("worse", None), ("GRM", "plain")),
        PaperRow("small", (None, None)),
    )
    assert from_dict(json.loads(json.dumps(as_dict(made)))) == made
    assert plan(GRID + PAPER, quick=True).paper == made.paper


def test_it_changes_no_run_and_no_stored_plan_without_it(plan: Make) -> None:
    bare = plan(GRID)
    assert plan(GRID + PAPER).cells == bare.cells
    assert "paper" not in as_dict(bare)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Somebody, table 5", "''", "g.yaml:12: paper.source: must be text of at most 200 letters, got "),
        (
            "source: Somebody, table 5",
            "",
            "g.yaml:11: paper: the key source is missing; the keys of a paper block are source, columns, rows",
        ),
        ("GRM: {against", "GMR: {against", "g.yaml:18: paper.rows.GMR: the grid has no such row; did you mean GRM?"),
        (
            "against: plain",
            "against: plane",
            "is not a row under paper.rows; did you mean plain?",
        ),
        ("against: plain", "against: GRM", "g.yaml:18: paper.rows.GRM.against: a row cannot be compared with itself"),
        ("[GRM, plain]", "[GRM, GRM]", "paper.rows.GRM - gating.against: GRM is listed twice"),
        (
            "[31.8, 13.7]",
            "[31.8]",
            (
                "g.yaml:17: paper.rows.plain.figures: there are 1 figures for 2 columns; write null where no figure is "
                "published"
            ),
        ),
        (
            "[31.8, 13.7]",
            "[31.8, .nan]",
            "must be a number, null (not published) or one of better, worse, even, got nan",
        ),
        (
            "{retrieval: 40.5}",
            "{retreival: 40.5}",
            "retreival: there is no such column under paper.columns; did you mean retrieval?",
        ),
        ("[31.8, 13.7]", "[better, 13.7]", "g.yaml:17: paper.rows.plain: the figure better compares with another row"),
        ("metric: bits", "metric: bit", "paper.columns.language.metric: must be one of accuracy, value_accuracy,"),
        (
            "margin: 0.02",
            "margin: 0",
            "paper.columns.retrieval.margin: must be a number above 0, in units of the metric",
        ),
        ("margin: 0.02", "marign: 2", "g.yaml:14: paper.columns.retrieval.marign: unknown key; did you mean margin?"),
        ("task.name: [mqar, ar]", "task.nam: mqar", "g.yaml:14: paper.columns.retrieval.where: task.nam: unknown key"),
        ("task.name: [mqar, ar]", "task.name: marq", "did you mean mqar?"),
        ("unit: perplexity", "better: left", "paper.columns.language.better: must be one of up, down, got"),
    ],
)
def test_faults_are_one_line(fault: Fault, old: str, new: str, message: str) -> None:
    found = fault(with_paper(old, new))
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize("block", ["paper: 3", "paper: {}", "paper: {source: x, columns: {}, rows: {plain: {}}}"])
def test_a_block_that_is_none_is_refused(fault: Fault, block: str) -> None:
    assert "must be a mapping" in fault(f"{GRID}{block}\n")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rows", [{"name": "GRM", "figures": [1.0], "against": []}], "1 figures for 2 columns"),
        ("rows", [{"name": "GRM", "figures": [1.0, None], "against": ["x"]}], "compared with x"),
        ("columns", [], "paper.columns"),
    ],
)
def test_a_stored_block_that_was_edited_is_refused(plan: Make, key: str, value: object, message: str) -> None:
    data = as_dict(plan(GRID + PAPER))
    data["paper"][key] = value
    with pytest.raises(ValueError, match=message):
        from_dict(data)

"""Slices that `eval.task` adds, answers of several tokens, and keys that hold variants, in every table."""

from dataclasses import replace

import polars as pl
import pytest

from mclab.config.ids import run_id
from mclab.report.prose.notes import notes
from mclab.report.table.accuracy import same_function
from mclab.report.table.frames import cells_frame, runs_frame
from mclab.report.table.summary import summarise
from mclab.report.text import value_text
from mclab.report.write import markdown
from tests.report.plans import GATE, gates, make_plan, record
from tests.stored import score, scores

EXAMS = {"eval.task": [{"length": 256}, {"pairs": 16}]}
FURTHER = ("length=256 pairs=4", "length=256 pairs=8", "pairs=16")


def examined(*rows, cells=({GATE: "context"}, {GATE: "input"}), base=EXAMS):
    """A plan, and records whose own slices score as given and whose further ones score a tenth less."""
    plan = make_plan(list(cells), seeds=range(len(rows[0])), base=base)
    records = {}
    for cell, row in zip(plan.cells, rows, strict=True):
        for config, result in zip(cell.candidates[0].runs.values(), row, strict=True):
            made = record(config, result)
            if made.status == "done":
                extra = [part for exam in config.test_variants for part in exam.slices]
                test = scores(config.task.slices, result) | dict.fromkeys(extra, score(result - 0.1, 2.0))
                made = replace(made, test=test)
            records[run_id(config)] = made
    return plan, records


def test_further_slices_stand_after_the_own_and_are_in_no_mean():
    plan, records = examined([0.5, 0.7], [0.6, "diverged"])
    frame = cells_frame(plan, records.get)
    means = [name for name in frame.columns if name.startswith("test_accuracy") and name.endswith("_mean")]
    parts = ["", "[pairs=4]", "[pairs=8]", *(f"[{part}]" for part in FURTHER)]
    assert means == [f"test_accuracy{part}_mean" for part in parts]
    assert frame["test_accuracy_mean"].to_list() == pytest.approx([0.6, 0.3])
    assert frame["test_accuracy[length=256 pairs=8]_mean"].to_list() == pytest.approx([0.5, 0.25])
    assert frame["test_accuracy[pairs=16]_max"].to_list() == pytest.approx([0.6, 0.5])
    assert frame["diff_mean"][1] == pytest.approx(-0.3)


def test_runs_have_no_valid_on_further_slices():
    plan, records = examined([0.5], [0.6])
    frame = runs_frame(plan, records.get)
    assert frame["test_accuracy[length=256 pairs=4]"].to_list() == pytest.approx([0.4, 0.5])
    assert frame["test_loss[pairs=16]"].to_list() == [2.0, 2.0]
    assert "valid_accuracy[pairs=4]" in frame.columns
    assert "valid_accuracy[pairs=16]" not in frame.columns


def test_the_page_shows_them_and_says_what_the_mean_is_over():
    plan, records = examined([0.5, 0.7], [0.6, 0.6])
    page = markdown(summarise(plan, records.get))
    heads = [line for line in page.splitlines() if line.startswith("| gate") and "pairs=16" in line]
    assert len(heads) == 1
    cells = [cell.strip() for cell in heads[0].strip("|").split("|")]
    assert cells == ["gate", "mean of own", "pairs=4", "pairs=8", *FURTHER]
    assert "the mean over the task's own slices (pairs=4 and pairs=8)" in page
    assert "own slices" not in markdown(summarise(*gates([0.5] * 3, [0.6] * 3)))


def test_own_slices_alone_decide_what_is_compared():
    """One row sat a further exam: the difference is over what both sat, and the same function is known as such."""
    plan, records = examined(
        [0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.6, 0.8, 0.9], cells=[{}, EXAMS, {GATE: "input", **EXAMS}], base={}
    )
    summary = summarise(plan, records.get)
    assert [row.difference.kind for row in summary.rows[1:]] == ["identical", "tested"]
    others = make_plan([{"task.pairs": [4, 8]}, {"task.pairs": [4]}], seeds=range(3), base={"eval.task": "pairs=16"})
    assert summarise(others, {}.get).rows[1].difference.kind == "slices"


def test_another_function_on_a_shared_slice_is_another():
    one, other = examined([0.5], [0.5])[1].values()
    assert same_function(one, other)
    assert not same_function(one, replace(other, test={**other.test, "pairs=16": score(0.4, 2.5)}))


def test_a_slice_that_is_own_in_one_cell_stands_with_the_own():
    plan = make_plan([{"task.pairs": [4]}, {"task.pairs": [4, 16]}], base={"eval.task": "length=128"}, seeds=[0])
    summary = summarise(plan, {}.get)
    assert summary.slices == ("pairs=4", "pairs=16", "length=128 pairs=4", "length=128 pairs=16")
    assert summary.extras == summary.slices[2:]


def needles(tokens):
    """Two cells of niah: half of the answers right, the share of right tokens as given."""
    cells = [{"model.dim": 16}, {"model.dim": 32}]
    plan = make_plan(cells, seeds=range(2), base={"task": {"name": "niah", "depth": [0, 50]}})
    records = {}
    for cell in plan.cells:
        for seed, config in cell.candidates[0].runs.items():
            test = scores(("depth=0", "depth=50"), 0.5, token_accuracy=tokens[seed])
            records[run_id(config)] = record(config, 0.5, test=test)
    return plan, records


def test_token_accuracy_where_an_answer_is_several_tokens(monkeypatch):
    monkeypatch.setattr("tests.report.plans.run", niah_run)
    plan, records = needles([0.8, 0.9])
    frame = cells_frame(plan, records.get)
    assert frame["test_accuracy_mean"].to_list() == [0.5, 0.5]
    assert frame["test_token_accuracy_mean"].to_list() == pytest.approx([0.85, 0.85])
    assert frame["test_token_accuracy[depth=50]_min"].to_list() == [0.8, 0.8]
    assert runs_frame(plan, records.get)["test_token_accuracy"].to_list() == [0.8, 0.9, 0.8, 0.9]
    page = markdown(summarise(plan, records.get))
    assert " token accuracy |" in page
    assert "share of answers that are right as a whole" in page
    first = next(iter(records))
    records[first] = replace(records[first], status="diverged", test={})
    assert cells_frame(plan, records.get)["test_token_accuracy_min"][0] == 0.0


def niah_run(settings, seed):
    from mclab.config.parse import parse_run
    from mclab.plan.dotted import nested

    return parse_run({"seed": seed, **nested(dict(settings))})


def test_token_accuracy_is_no_column_where_an_answer_is_one_token():
    plan, lookup = gates([0.5], [0.6])
    assert not [name for name in cells_frame(plan, lookup).columns if "token_accuracy" in name]
    assert "token accuracy" not in markdown(summarise(plan, lookup))


def test_a_record_from_before_tokens_were_counted_has_none(monkeypatch):
    monkeypatch.setattr("tests.report.plans.run", niah_run)
    plan, records = needles([0.8, 0.9])
    old = scores(("depth=0", "depth=50"), 0.5)
    records = {run: replace(made, test=old) for run, made in records.items()}
    assert cells_frame(plan, records.get)["test_token_accuracy_mean"].to_list() == [None, None]
    assert runs_frame(plan, records.get)["test_token_accuracy"].to_list() == [None] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"length": 128}, "length=128"),
        ({"length": [128, 256], "pairs": 4}, "length=128,256 pairs=4"),
        ([{"length": 128}, {"length": 256}], "length=128; length=256"),
        (("length=128", "pairs=32"), "length=128; pairs=32"),
        ((), "[]"),
        ((4, 8), "4,8"),
    ],
)
def test_variants_as_values(value, text):
    assert value_text(value) == text


def test_exams_as_an_axis_are_a_column_of_text():
    plan = make_plan([{"eval.task": []}, {"eval.task": {"length": 128}}, {GATE: "input"}], seeds=[0])
    frame = cells_frame(plan, {}.get)
    assert frame["eval.task"].to_list() == ["[]", "length=128", "[]"]
    assert frame.schema["eval.task"] == pl.String
    summary = summarise(plan, {}.get)
    assert "| length=128 |" in markdown(summary)
    assert [row.label for row in summary.rows] == [
        "eval.task=[], gate=context",
        "eval.task=(length=128), gate=context",
        "eval.task=[], gate=input",
    ]


def test_a_key_that_changes_no_result_is_no_difference_between_rows():
    plan = make_plan([{GATE: gate} for gate in ("context", "input")], base={"train.checkpoint_every": 50}, seeds=[0])
    assert [row.values for row in summarise(plan, {}.get).rows] == [{GATE: "context"}, {GATE: "input"}]
    varied = make_plan([{GATE: "context", "train.checkpoint_every": 50}, {GATE: "input"}], seeds=[0])
    assert "train.checkpoint_every" not in summarise(varied, {}.get).rows[1].values


def test_notes_of_many_own_slices_are_short():
    plan = make_plan([{}], base={"task.pairs": list(range(1, 13)), "eval.task": "length=128"}, seeds=[0])
    (line,) = [line for line in notes(summarise(plan, {}.get)) if "own slices" in line]
    assert "(pairs=1 to pairs=12)" in line

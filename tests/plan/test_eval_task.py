"""Grids with further exams and mixes: how they are written, varied, counted and refused."""

import json

import pytest

from mclab.config.ids import run_id
from mclab.plan.plan import workload
from mclab.plan.plan_diff import plan_diff
from mclab.plan.plan_json import as_dict, from_dict
from tests.plan.conftest import Fault, Make
from tests.plan.test_grid import names

BASE = "base: {task: {pairs: [4, 8]}, train: {steps: 10, batch: 4}}\n"


@pytest.mark.parametrize(
    "text",
    [
        "base: {eval: {task: {length: [128, 256]}}}",
        "base: {eval.task: [{length: 128}, {length: 256}]}",
        "base:\n  eval:\n    task:\n    - length: 128\n    - {length: 256}",
    ],
)
def test_exams_in_a_base(plan: Make, text: str):
    run = next(plan(text).first_runs())
    assert [exam.label for exam in run.test_variants] == ["length=128", "length=256"]


def test_exams_on_the_command_line(plan: Make):
    for value in ("{length: [128, 256]}", "[{length: 128}, {length: 256}]", "length=[128, 256]"):
        run = next(plan(BASE, f"eval.task={value}").first_runs())
        assert [exam.label for exam in run.test_variants] == ["length=128", "length=256"]


def test_exams_as_an_axis(plan: Make):
    found = plan(f"{BASE}grid: {{eval.task: [[], {{length: 128}}, [{{length: 128}}, {{pairs: 16}}]]}}")
    assert names(found) == ["eval.task=[]", "eval.task={length: 128}", "eval.task=[{length: 128}, {pairs: 16}]"]
    assert [len(run.test_variants) for run in found.first_runs()] == [0, 1, 2]
    back = from_dict(json.loads(json.dumps(as_dict(found))))
    assert back == found
    assert list(back.first_runs()) == list(found.first_runs())


def test_two_ways_to_write_one_exam_are_one_cell(plan: Make):
    found = plan(f"{BASE}grid: {{eval.task: [{{length: 128}}, [{{length: 128}}]]}}")
    assert names(found) == ["eval.task={length: 128}"]
    assert found.notes == ("grid: eval.task lists [{length: 128}] twice (once as {length: 128}); it runs once",)


def test_exams_in_conditions(plan: Make):
    text = f"{BASE}grid: {{eval.task: [{{length: 128}}, {{length: 256}}], model.dim: [8, 16]}}\n"
    found = plan(f"{text}exclude: [{{eval.task: {{length: 256}}, model.dim: 16}}]")
    assert len(found.cells) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "base:\n  eval:\n    task: {lenght: 128}",
            "g.yaml:3: eval.task: lenght=128: task mqar has no key lenght; did you mean length?",
        ),
        (
            "grid:\n  eval.task:\n  - {length: 128}\n  - {pairs: 32}",
            "g.yaml:4: eval.task: pairs=32: pairs: 32 pairs and their queries need 4 * 32 = 128 tokens, but length is "
            "64; take length 128 or at most 16 pairs (cell eval.task={pairs: 32})",
        ),
        (
            "base: {eval.task: {pairs: 8}}",
            "g.yaml:1: eval.task: pairs=8: the test has this slice already (it is the task's own slice); leave it out",
        ),
        (
            "base: {eval.task: [{length: 128}, {length: 128}]}",
            (
                "g.yaml:1: eval.task: length=128 pairs=4: the test has this slice already (it is an earlier slice); "
                "leave it out"
            ),
        ),
        (
            "base: {eval.task: {length: 4, pairs: 1}}",
            "g.yaml:1: eval.task: length=4: eval.test asks for 1024 sequences, but the smallest slice has only 992 "
            "different ones, and the test gets a quarter of these; take eval.test 248 or a larger task",
        ),
        (
            "base: {train.task: [{length: 128}, {length: 128, weight: 3}]}",
            "g.yaml:1: train.task: length=128: this task is in the mix twice; list it once and give it a weight",
        ),
        (
            "base: {model.position: learned, eval.task: {length: 128}}",
            "g.yaml:1: eval.task: length 128 is longer than the learned positions, which end at task.length 64; "
            "take model.position none or rotary, or a larger task.length",
        ),
        (
            "base: {eval.task.length: 128}",
            (
                "g.yaml:1: eval.task.length: unknown key; eval.task is itself a key and has no keys inside; write "
                "eval.task: {length: ...}"
            ),
        ),
        (
            "grid: {train.task.length: [128]}",
            "g.yaml:1: grid: train.task.length: unknown key; train.task is itself a key and has no keys inside; "
            "write train.task: {length: ...}",
        ),
        (
            "base: {model.dim.x: 3}",
            "g.yaml:1: model.dim.x: unknown key; model.dim is itself a key and has no keys inside",
        ),
        (
            "grid: {eval.task: {length: [128, 256]}}",
            "g.yaml:1: grid: eval.task: must be a list of values, got {length: [128, 256]}; write [...]",
        ),
        (
            "base: {eval.task: 3}",
            (
                "g.yaml:1: eval.task: must be a mapping of the task's keys, or a list of such mappings ([] for none), "
                "got 3"
            ),
        ),
    ],
)
def test_faults(fault: Fault, text: str, message: str):
    assert fault(text) == message


def test_an_exam_may_not_be_chosen_and_a_mix_may(plan: Make, fault: Fault):
    assert "changes the test" in fault("select: {over: {eval.task: [{length: 128}, {length: 256}]}}")
    found = plan(f"{BASE}select: {{over: {{train.task: [[], {{length: 128}}]}}, seeds: 1}}")
    assert [len(run.train.task) for run in found.first_runs()] == [0, 1]
    assert from_dict(json.loads(json.dumps(as_dict(found)))).cells[0].candidates[1].values == {
        "train.task": {"length": 128}
    }


def test_tokens_count_the_mix(plan: Make):
    assert workload(plan(BASE)).tokens == 10 * 4 * 64
    mixed = plan(BASE, "train.task=[{weight: 4}, {length: 128}]")
    assert workload(mixed).tokens == 4 * (8 * 64 + 2 * 128)


def test_cells_that_differ_in_checkpoints_alone_are_one(plan: Make):
    text = "grid: {model.mixer.gate: [context, none], train.checkpoint_every: [50, 100]}"
    found = plan(BASE + text)
    assert names(found) == ["gate=context", "gate=none"]
    assert found.notes == (
        "4 cells, 2 distinct: gate=context, checkpoint_every=100 is the same as gate=context, checkpoint_every=50; "
        "gate=none, checkpoint_every=100 is the same as gate=none, checkpoint_every=50",
    )
    assert [run.train.checkpoint_every for run in found.first_runs()] == [50, 50], "it is used all the same"


def test_checkpoints_make_no_other_grid(plan: Make):
    plain, kept = plan(BASE), plan(BASE, "train.checkpoint_every=50")
    (run,) = kept.first_runs()
    assert run.train.checkpoint_every == 50
    assert run_id(run) == run_id(next(plain.first_runs()))
    assert not plan_diff(plain, kept)
    back = from_dict(json.loads(json.dumps(as_dict(kept))))
    assert next(back.first_runs()).train.checkpoint_every == 50
    assert str(plan_diff(plain, plan(BASE, "train.checkpoint_every=50", "train.steps=20"))) == (
        "+1 −1 cells (train.steps 10 → 20)"
    )

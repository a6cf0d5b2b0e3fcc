"""Variants of a task: how they are written, what they make, what is refused."""

import json
from typing import Any

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.keys import by_path
from mclab.config.parse import parse_run, typed
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.task import MqarTask
from mclab.config.variants import check_mix, check_test_variants, turns, variants

TASK = MqarTask(vocab=64, length=64, pairs=(4, 8))


def lines(value: Any) -> Any:
    return typed("eval.task", value)


def exams(value: Any) -> Any:
    return variants(TASK, lines(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"length": 128}, ("length=128",)),
        ([{"length": 128}], ("length=128",)),
        ("length=128", ("length=128",)),
        ({"pairs": 16, "length": 128}, ("length=128 pairs=16",)),
        ("pairs=16 length=128", ("length=128 pairs=16",)),
        ({"length": [128, 256]}, ("length=[128, 256]",)),
        ("pairs=[4, 8] filler=random", ("filler=random pairs=[4, 8]",)),
        ({"length": 128, "weight": 1}, ("length=128",)),
        ({"weight": 1}, ("weight=1",)),
        ({}, ("weight=1",)),
        ([{"weight": 2}, {"length": 128, "weight": 3}], ("weight=2", "length=128 weight=3")),
        ([], ()),
        ({"corpus": "a b=1"}, ('corpus="a b=1"',)),
    ],
)
def test_one_variant_is_written_in_one_way(value: Any, text: tuple[str, ...]):
    assert lines(value) == text
    assert lines(list(text)) == text, "as a stored plan has it"


def test_ways_to_write_one_exam_are_one_run():
    runs = [parse_run({"eval": {"task": task}}) for task in ({"length": 128, "pairs": 16}, "pairs=16 length=128")]
    assert run_id(runs[0]) == run_id(runs[1]) != run_id(RunConfig())


def test_slices_are_named_by_what_changes():
    found = exams([{"length": [128, 256]}, {"pairs": [12, 16]}, {"filler": "random", "pairs": 4}])
    assert [list(variant.slices) for variant in found] == [
        ["length=128 pairs=4", "length=128 pairs=8"],
        ["length=256 pairs=4", "length=256 pairs=8"],
        ["pairs=12", "pairs=16"],
        ["filler=random pairs=4"],
    ]
    assert found[1].task == TASK.model_copy(update={"length": 256})


def test_what_no_variant_can_change_may_be_repeated():
    """The same run as without, under the same id; the slices have the same names."""

    def run_of(exam: Any) -> RunConfig:
        return parse_run({"task": {"vocab": 48}, "eval": {"task": exam, "valid": 8, "test": 8}})

    plain = run_of({"length": 128})
    for repeated in ({"vocab": 48}, {"name": "mqar"}, {"name": "mqar", "vocab": [48]}):
        run = run_of({"length": 128, **repeated})
        assert run.test_variants == plain.test_variants
        assert canonical(run) == canonical(plain)
        assert run_id(run) == run_id(plain)
    mixed = parse_run({"task": {"vocab": 48}, "train": {"task": [{"vocab": 48}, {"length": 128, "name": "mqar"}]}})
    assert [part.task for part in mixed.mix] == [plain.task, plain.test_variants[0].task]
    for other in ({"vocab": [48, 64]}, {"name": "ar"}):
        with pytest.raises(ConfigError, match="cannot be changed, because the model is trained on one task"):
            run_of({"length": 128, **other})


def test_lists_make_every_combination_with_the_weight_of_each():
    found = variants(TASK, lines({"length": [128, 256], "filler": ["zero", "random"], "weight": 2}))
    assert [(variant.label, variant.weight) for variant in found] == [
        (f"filler={filler} length={length}", 2) for filler in ("zero", "random") for length in (128, 256)
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"lenght": 128}, "eval.task: lenght=128: task mqar has no key lenght; did you mean length?"),
        ({"wieght": 2}, "eval.task: wieght=2: task mqar has no key wieght; did you mean weight?"),
        (
            {"zzz": 1},
            "eval.task: zzz=1: task mqar has no key zzz; its keys are length, pairs, filler, distractors, spread",
        ),
        (
            {"vocab": 8},
            "eval.task: vocab=8: vocab cannot be changed, because the model is trained on one task and one vocabulary",
        ),
        ({"length": 12.5}, "eval.task: length=12.5: length: must be a valid integer, got 12.5"),
        ({"length": 2}, "eval.task: length=2: length: must be greater than or equal to 4, got 2"),
        ({"length": []}, "eval.task: length=[]: length: must have at least one value, got []"),
        ({"filler": "zeros"}, "eval.task: filler=zeros: filler: must be 'zero' or 'random', got \"zeros\""),
        (
            {"length": 32, "pairs": 16},
            "eval.task: length=32 pairs=16: pairs: 16 pairs and their queries need 4 * 16 = 64 tokens, but length "
            "is 32; take length 64 or at most 8 pairs",
        ),
        ({"weight": 0}, "eval.task: weight=0: weight must be a whole number from 1 to 1000"),
        ({"weight": True}, "eval.task: weight=true: weight must be a whole number from 1 to 1000"),
        (3, "eval.task: must be a mapping of the task's keys, or a list of such mappings ([] for none), got 3"),
        ([3], "eval.task: must be a mapping of the task's keys, or a list of such mappings ([] for none), got [3]"),
        (None, "eval.task: must be a mapping of the task's keys, or a list of such mappings ([] for none), got null"),
        ("longer", "eval.task: must be key=value pairs or a mapping of the task's keys, not 'longer', got \"longer\""),
        ("length=1 length=2", 'eval.task: the key length is given twice; keep one, got "length=1 length=2"'),
    ],
)
def test_faults_are_one_line(value: Any, message: str):
    with pytest.raises(ConfigError) as caught:
        parse_run({"eval": {"task": value}})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"pairs": 4}, "pairs=4: the test has this slice already (it is the task's own slice); leave it out"),
        ({"pairs": [4, 16]}, "pairs=4: the test has this slice already (it is the task's own slice); leave it out"),
        ({}, "pairs=4: the test has this slice already (it is the task's own slice); leave it out"),
        (
            {"length": 64},
            (
                "length=64 pairs=4: the test has this slice already (it is the same as pairs=4, the task's own slice); "
                "leave it out"
            ),
        ),
        (
            [{"length": 128}, {"length": [256, 128]}],
            "length=128 pairs=4: the test has this slice already (it is an earlier slice); leave it out",
        ),
        (
            [{"pairs": 16}, {"length": 64, "pairs": 16}],
            (
                "length=64 pairs=16: the test has this slice already (it is the same as pairs=16, an earlier slice); "
                "leave it out"
            ),
        ),
        (
            {"length": 128, "weight": 2},
            "weight=2: a weight is a share of training, and a test has no weight; leave it out",
        ),
        (
            {"length": 4, "pairs": 1},
            (
                "length=4: eval.test asks for 1024 sequences, but the smallest slice has only 992 different ones, and "
                "the test gets a quarter of these; take eval.test 248 or a larger task"
            ),
        ),
    ],
)
def test_exams_that_add_nothing_or_are_too_small(value: Any, message: str):
    with pytest.raises(ValueError, match=r"^") as caught:
        check_test_variants(TASK, exams(value), 1024)
    assert str(caught.value) == message


def test_exams_that_add_something():
    check_test_variants(TASK, exams([{"length": [128, 256]}, {"pairs": [12, 16]}, {"length": 128, "pairs": 16}]), 1024)


def test_a_mix_names_a_task_once():
    check_mix(exams([{}, {"length": 128, "weight": 2}]))
    for twice in ([{"length": 128}, {"length": 128, "weight": 2}], [{"length": 128}, {"length": [256, 128]}]):
        with pytest.raises(
            ValueError, match=r"^length=128: this task is in the mix twice; list it once and give it a weight$"
        ):
            check_mix(exams(twice))
    with pytest.raises(ValueError, match=r"^pairs=4 pairs=8: this task is in the mix twice"):
        check_mix(exams([{"length": 64}, {}]))


def test_turns_keep_shares_exactly_and_evenly():
    assert turns((1,), 3) == (0, 0, 0)
    assert turns((3, 2), 10) == (0, 1, 0, 1, 0) * 2
    order = turns((7, 1, 4), 36)
    assert [[order[at : at + 12].count(part) for part in range(3)] for at in (0, 12, 24)] == [[7, 1, 4]] * 3
    assert order[:20] == turns((7, 1, 4), 20), "the part of a step does not hang on how many follow"


def test_how_the_keys_are_described():
    for path in ("eval.task", "train.task"):
        (key,) = by_path()[path].values()
        assert (key.type, key.default) == ("mapping of task keys, or list of them", ())
    schema = json.dumps(RunConfig.model_json_schema()["$defs"]["EvalConfig"]["properties"]["task"])
    assert '"type": "object"' in schema

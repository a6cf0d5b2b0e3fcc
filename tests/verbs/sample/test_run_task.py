"""On which sequences a stored run is looked at."""

import pytest

from mclab.config.strict import ConfigError
from mclab.verbs.sample.run import chosen
from tests.verbs.sample.bench import small_run

EXAM = [{"length": 32, "pairs": [4]}, {"filler": "random"}]


def test_the_runs_own_task_a_slice_of_it_and_a_variant():
    run = small_run(eval={"task": EXAM})
    assert chosen(run) == run.task
    assert chosen(run, slice_name="pairs=2") == run.task.only("pairs=2")
    longer = run.task.model_copy(update={"length": 32, "pairs": (4,)})
    assert chosen(run, ["length=32", "task.pairs=4"]) == longer
    assert chosen(run, ["length=32", "pairs=[2, 4]"], "pairs=4") == longer


def test_a_slice_that_the_tables_show_beside_the_tasks_own():
    run = small_run(eval={"task": EXAM})
    for exam in run.test_variants:
        for name, own in exam.slices.items():
            assert chosen(run, slice_name=name) == exam.task.only(own)


@pytest.mark.parametrize(
    ("overrides", "slice_name", "message"),
    [
        (["vocab=32"], None, "vocab=32: vocab cannot be changed"),
        (["lenght=32"], None, "mqar has no key lenght; did you mean length"),
        (["train.steps=3"], None, "train.steps=3: with --run only keys of the task can be changed"),
        (["weight=3"], None, "weight=3: mqar has no key weight"),
        (["length"], None, "length: this is not an override; write key=value"),
        (["pairs=9"], None, "take length 36 or at most 4 pairs"),
        (["length=[32, 64]"], None, "these values make 2 tasks; give each key one value"),
        ([], "pairs=3", "--slice: 'pairs=3' is not one of pairs=1, pairs=2; did you mean pairs="),
        (["pairs=4"], "pairs=1", "--slice: 'pairs=1' is not one of pairs=4"),
    ],
)
def test_faults_are_one_line(overrides, slice_name, message):
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")) as caught:
        chosen(small_run(), overrides, slice_name)
    assert "\n" not in str(caught.value)


def test_no_length_beyond_learned_positions():
    run = small_run(model={"position": "learned"})
    assert chosen(run, ["length=8"]).length == 8
    with pytest.raises(ConfigError, match="length 32 is longer than the 16 positions that the run has learned"):
        chosen(run, ["length=32"])

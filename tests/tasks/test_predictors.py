"""What can be answered without recall: little, on what is trained, in every task that there is; and it is measured."""

import pytest
import torch

from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.task import ArTask, MqarTask, NiahTask
from mclab.tasks import TASKS, Batch
from mclab.tasks.baseline import fitted_on, scored, without_recall
from mclab.tasks.predictors import BLIND, COPYING, TrainingSet, needles, pairs, predictors
from mclab.tasks.predictors.table import counted
from mclab.tasks.scoring import counts
from mclab.train import train_pack
from tests.tasks.cases import CASES
from tests.tasks.readers import ASK, items

#: The most that any predictor may have right on training sequences. A guess among a sequence's values has 0.107 of the
#: pairs 4, 8 and 16, 0.12 of the values of 8.1 different keys, a quarter of four needles. By position the power law
#: tells more, as Zoology's does: with it 16 pairs are 0.12 for 0.06.
BOUNDS = {
    "mqar": 0.17,
    "mqar random": 0.12,
    "mqar wide": 0.18,
    "mqar small": 0.8,
    "ar": 0.15,
    "ar answer": 0.07,
    "ar small": 0.85,
    **dict.fromkeys(("niah", "niah1", "niah2", "niah3", "mv", "niah least", "niah depth"), 0.01),
    **dict.fromkeys(("mk1", "mk3", "mk3 least"), 0.3),
    **dict.fromkeys(("mq", "mq least"), 0.07),
    "mk2": 0.05,
    "niah all": 0.01,
    # What byte follows which in source code, which digit follows which in numbered lines.
    "text": 0.5,
    "text file": 0.5,
    "module": 0.2,
    # The value that most of the keys with one second half have; 1 / 32 is a guess.
    "facts": 0.2,
    "facts few": 0.9,
    "niah full": 0.01,
}


@pytest.mark.parametrize("name", CASES)
def test_no_predictor_does_well_on_what_is_trained(name):
    """Fitted on training sequences and scored on others, by whole answers."""
    task = CASES[name]
    lessons = fitted_on([(1, task)], 0)
    found = scored(task.as_tested(), predictors(task), lessons, 0, "train", 1000, 2048)
    assert set(found) == {*BLIND, *(COPYING[task.name] if task.keys > 1 else ())}
    assert max(found.values()) < BOUNDS[name]


def test_every_task_names_its_predictors_and_every_case_its_bound():
    assert COPYING.keys() == TASKS.keys()
    assert BOUNDS.keys() == CASES.keys()


def test_the_power_law_leaks_by_position_and_the_uniform_one_does_not():
    found = {}
    for spread in ("power", "uniform"):
        task = MqarTask(pairs=(16,), spread=spread)
        found[spread] = scored(task, predictors(task), fitted_on([(1, task)], 0), 0, "test", 1000)
    assert found["power"]["position alone"] == pytest.approx(0.12, abs=0.01)
    assert found["uniform"]["position alone"] == pytest.approx(1 / 16, abs=0.01)
    assert found["power"]["any value"] == pytest.approx(1 / 16, abs=0.01)


def test_a_needle_at_fixed_places_would_be_found_out():
    """Where training keeps to the depths that are tested, the place alone says which needle is asked."""
    task = NiahTask(preset="mk1", length=160)
    leaking = TrainingSet(task, TASKS["niah"].batch(task, [0], "valid", 0, 2000, "cpu"))
    exam = TASKS["niah"].batch(task, [0], "test", 0, 1000, "cpu")

    def right(lesson):
        chosen = needles.key_blind(task, exam, [lesson])
        return counts(chosen, exam.answers, 7, 7)[0].item() / 1000

    assert right(leaking) > 0.9
    assert right(*fitted_on([(1, task)], 0)) < 0.3


def test_pairs_that_are_asked_more_often_the_more_they_come_would_be_found_out():
    """By hand: v5 stands in three of five pairs."""
    tokens = torch.tensor([[[1, 5, 2, 6, 1, 5, 3, 7, 1, 5, 0, 2]]])
    exam = Batch(tokens, torch.tensor([[[11]]]), torch.tensor([[[6]]]), *torch.zeros(2, 1, 1, dtype=torch.int64))
    task = ArTask(vocab=8, length=12)
    assert pairs.most_frequent(task, exam, []).tolist() == [[[5]]]
    assert pairs.latest(task, exam, []).tolist() == [[[5]]]
    lesson = TrainingSet(task, exam)
    assert pairs.by_position(task, exam, [lesson]).tolist() == [[[6]]]
    assert COPYING["ar"]["most frequent value"] is pairs.most_frequent


@pytest.mark.parametrize("name", ["mk1", "mk2", "mk3", "niah all", "niah full", "mq"])
def test_a_needles_predictor_answers_with_values_that_stand_in_the_haystack(name):
    """Read by who knows nothing of the generator: whole values, the first or the last where the rule says so."""
    task = CASES[name]
    exam = TASKS["niah"].batch(task, [0], "test", 0, 40, "cpu")
    ends = {"first value": 0, "latest value": -1}
    for rule, predictor in COPYING["niah"].items():
        chosen = predictor(task, exam, fitted_on([(1, task)], 0))[0].unflatten(-1, (-1, task.value_tokens)).tolist()
        for tokens, values in zip(exam.tokens[0].tolist(), chosen, strict=True):
            there = [part[1] for part in items(tokens[: tokens.index(ASK)]) if isinstance(part, tuple)]
            assert {tuple(value) for value in values} <= set(there)
            if rule in ends:
                assert tuple(values[0]) == there[ends[rule]]


def test_where_values_are_fed_none_is_given_again():
    """Four needles, all asked: the last answer is clear when three have been fed, so 1 in 24 whole answers is right."""
    task = NiahTask(preset="mq", length=96)
    exam = TASKS["niah"].batch(task, [0], "valid", 0, 3000, "cpu")
    chosen = needles.some(task, exam, [])
    right, answers, values, asked, *_ = counts(chosen, exam.answers, 28, 7).flatten().tolist()
    assert right / answers == pytest.approx(1 / 24, abs=0.01)
    assert values / asked == pytest.approx((1 / 4 + 1 / 3 + 1 / 2 + 1) / 4, abs=0.02)


def test_on_a_slice_of_fixed_depth_the_first_or_the_last_is_right_by_construction():
    found = without_recall(RunConfig.model_validate({"task": {"name": "niah", "preset": "mk1"}}), 0)
    assert found["depth=0"]["first value"] == found["depth=100"]["latest value"] == 1.0
    assert found[ALL]["latest value"] == pytest.approx(
        sum(found[f"depth={d}"]["latest value"] for d in range(0, 101, 25)) / 5
    )


def test_a_table_answers_with_the_most_frequent_and_goes_to_the_next_context_where_one_is_new():
    contexts, outcomes = torch.tensor([7, 3, 3, 3, 7, 9]), torch.tensor([1, 4, 2, 4, 0, 5])
    table = counted([(contexts[:4], outcomes[:4]), (contexts[4:], outcomes[4:])])
    assert table.of(torch.tensor([3, 7, 9, 0, 4, 8, 99])).tolist() == [4, 0, 5, 4, 0, 5, 5]


EXAMS = {"task": {"pairs": 1}, "eval": {"task": [{"pairs": 4}], "test": 64}}


def test_copies_count_where_there_are_two_keys():
    one = without_recall(RunConfig.model_validate(EXAMS), 0)
    assert [set(named) for named in one.values()] == [set(BLIND), set(BLIND), {*COPYING["mqar"], *BLIND}]
    assert list(one) == [ALL, "pairs=1", "pairs=4"]
    two = without_recall(RunConfig.model_validate({"task": {"pairs": [1, 2]}}), 0)
    assert two["pairs=1"]["latest value"] == 1.0
    assert two[ALL]["latest value"] == 0.75


def test_they_are_fitted_on_the_mix_that_is_trained():
    """Two pairs are trained alone, at positions that in the test of four follow other pairs."""
    task = {"vocab": 16, "length": 16, "pairs": 4}
    alone, mixed = (
        without_recall(RunConfig.model_validate({"task": task, "train": {"task": mix}}), 0)[ALL]["position alone"]
        for mix in ([], [{"pairs": 2}])
    )
    assert alone > mixed


def test_a_run_stores_them_by_its_own_seed():
    config = {
        "task": {"vocab": 16, "length": 16, "pairs": [1, 2]},
        "model": {"dim": 8},
        "eval": {"valid": 8, "test": 32},
    }
    runs = [
        RunConfig.model_validate({**config, "seed": seed, "train": {"steps": 1, "batch": 4, "lr": lr}})
        for seed, lr in ((0, 0.01), (1, 0.01), (1, 0.02))
    ]
    found = [outcome.without_recall for outcome in train_pack(runs, device="cpu")]
    assert found == [without_recall(run, run.seed) for run in runs]
    assert found[1] == found[2] != found[0]
    assert set(found[0]) == {ALL, "pairs=1", "pairs=2"}

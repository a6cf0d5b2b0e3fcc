"""What a trained model answers, and where its gates look."""

import pytest
import torch

from mclab.caching.record_weights import recording
from mclab.config.strict import ConfigError
from mclab.tasks import TASKS
from mclab.train.weights import load_model
from mclab.verbs.sample.answers import Head, predicted
from mclab.verbs.sample.run import chosen
from tests.tolerances import FP64
from tests.verbs.sample.bench import small_run, stored, trained


def look(tmp_path, run, *, split="test", count=4, layer=None, head=None, slice_name=None, overrides=()):
    model, config = load_model(tmp_path, stored(tmp_path, run))
    return predicted(model, config, chosen(config, overrides, slice_name), split, count, layer=layer, head=head)


@pytest.mark.parametrize(
    "run",
    [
        small_run(train={"steps": 30}),
        small_run(train={"steps": 30, "precision": "bf16"}),
        small_run(seed=5, model={"mixer": {"name": "attention"}}, train={"steps": 30}),
        small_run(task={"name": "niah", "vocab": 64, "length": 32, "pairs": None}, train={"steps": 5}),
        small_run(model={"mixer": {"segment": 2, "segmentation": "log"}}, train={"steps": 30}),
        small_run(
            model={"mixer": {"aggregate": "none"}}, train={"steps": 30}, eval={"post_training": 2, "post_segment": 4}
        ),
    ],
    ids=["memory", "bf16", "attention", "niah", "buckets", "cache after training"],
)
def test_a_whole_slice_scores_what_the_record_says(tmp_path, run):
    for name in run.task.slices[:2]:
        found = look(tmp_path, run, count=run.eval.test, slice_name=name)
        assert found.accuracy == trained(run).test[name].accuracy
        tokens = [query.right for sample in found.samples for query in sample.queries]
        assert sum(tokens) / len(tokens) == pytest.approx(trained(run).test[name].token_accuracy, abs=FP64)
        tmp_path = tmp_path / "next"


def test_the_weights_are_those_of_the_pass_at_the_query(tmp_path):
    run = small_run(task={"vocab": 64, "length": 64, "pairs": [8]}, model={"layers": 2, "heads": 2, "mixer": {}})
    found = look(tmp_path, run, count=3)
    assert found.heads == [Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1)]
    model, _ = load_model(tmp_path)
    batch = TASKS["mqar"].batch(run.task, [run.seed], "test", 0, 3, "cpu")
    with recording(model) as seen, torch.no_grad():
        model(batch.tokens, batch.positions)
    for b, sample in enumerate(found.samples):
        for query in sample.queries:
            for head, strip in query.strips.items():
                row = seen[head.layer].weights[2 * b + head.head, query.at]
                torch.testing.assert_close(torch.tensor(strip.weights), row, atol=0, rtol=0)
                assert strip.visible == query.at // 8 + 1
                (place,) = query.needs
                assert strip.held == {place // 8}
                assert strip.share == pytest.approx(row[place // 8].item(), abs=1e-6)  # fp32 rows sum to 1 within 1e-6
                assert strip.even == 1 / strip.visible


def test_one_layer_one_head_and_those_that_are_not_there(tmp_path):
    run = small_run(model={"layers": 2, "heads": 2})
    assert look(tmp_path / "a", run, layer=1).heads == [Head(1, 0), Head(1, 1)]
    assert look(tmp_path / "b", run, layer=1, head=0).heads == [Head(1, 0)]
    with pytest.raises(ConfigError, match="--layer: layer 2 has no gate; give one of 0, 1"):
        look(tmp_path / "c", run, layer=2)
    with pytest.raises(ConfigError, match="--head: head 5 has no gate"):
        look(tmp_path / "d", run, head=5)


def test_layers_keep_their_numbers_in_a_pattern(tmp_path):
    run = small_run(model={"layers": 2, "pattern": ["attention", "mixer"]})
    assert look(tmp_path, run).heads == [Head(1, 0)]
    with pytest.raises(ConfigError, match="--layer: layer 0 has no gate; give one of 1"):
        look(tmp_path / "b", run, layer=0)


@pytest.mark.parametrize(
    ("mixer", "reason"),
    [
        ({"name": "attention"}, "mixer attention has no gate"),
        ({"aggregate": "none"}, "one memory and no gate"),
        ({"aggregate": "residual"}, "all memories that a token sees have equal weight"),
        ({"gate": "none"}, "all memories that a token sees have equal weight"),
        ({"memory": "titans", "aggregate": "none"}, "one memory and no gate"),
    ],
)
def test_without_a_gate_there_are_answers_alone(tmp_path, mixer, reason):
    found = look(tmp_path, small_run(model={"mixer": mixer}), layer=7)
    assert reason in found.why_no_gate
    assert found.heads == []
    assert all(query.wanted is not None for sample in found.samples for query in sample.queries)


def test_a_cache_after_training_is_read_where_it_is_scored(tmp_path):
    """On test, not on valid."""
    model, eval_ = {"mixer": {"aggregate": "none"}}, {"post_training": 1, "post_segment": 4}
    plain, cached = small_run(model=model), small_run(model=model, eval=eval_)
    for split, same in (("valid", True), ("test", False)):
        said = [
            [
                query.predicted
                for sample in look(tmp_path / str(n), run, split=split, count=16).samples
                for query in sample.queries
            ]
            for n, run in enumerate((plain, cached))
        ]
        assert (said[0] == said[1]) == same
        tmp_path = tmp_path / "next"
    assert "a cache that is added after training averages" in look(tmp_path / "a", cached).why_no_gate


def test_a_longer_sequence_than_trained_and_many_passes(tmp_path, monkeypatch):
    run = small_run(model={"mixer": {"segment": 4, "gate": "input"}})
    whole = look(tmp_path / "a", run, overrides=["length=32"], count=5, split="valid")
    monkeypatch.setattr("mclab.verbs.sample.answers.TOKENS", 64)
    pieces = look(tmp_path / "b", run, overrides=["length=32"], count=5, split="valid")
    assert len(whole.samples[0].row["tokens"]) == 32
    assert all(len(strip.weights) == 8 for strip in whole.known(Head(0, 0)))
    assert [s.row for s in pieces.samples] == [s.row for s in whole.samples]
    said = [[[query.predicted for query in s.queries] for s in found.samples] for found in (pieces, whole)]
    assert said[0] == said[1]


def test_on_train_only_the_answer_counts_where_every_token_is_scored(tmp_path):
    run = small_run(task={"name": "ar", "vocab": 20, "length": 40, "pairs": None, "loss": "all"})
    found = look(tmp_path, run, split="train")
    assert [[query.at for query in sample.queries] for sample in found.samples] == [[39]] * 4


def test_splits_that_are_none_and_tasks_that_are_too_small(tmp_path):
    run = small_run(task={"vocab": 4, "pairs": [1]}, eval={"valid": 1, "test": 1})
    with pytest.raises(ConfigError, match="split: 'tset' is none of train, valid, test"):
        look(tmp_path / "a", run, split="tset")
    with pytest.raises(ConfigError, match="the task has only 2 sequences"):  # valid and test have one each
        look(tmp_path / "b", run, split="train", overrides=["length=4", "spread=uniform"])

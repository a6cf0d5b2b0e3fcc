"""The weights that a caching layer reads with: those of the definition, and looking at them changes nothing."""

from typing import Any

import pytest
import torch

from mclab.caching import recurrent as definition
from mclab.caching.post_training import AfterTraining, post_training
from mclab.caching.record_weights import recording
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from tests.caching.test_layer import layer_and_inputs
from tests.covering import label, pairwise
from tests.layers import comparable
from tests.registries import words
from tests.tolerances import FP64


def axes() -> dict[str, list[Any]]:
    return {
        "aggregate": words("aggregate", but=["none"]),
        "gate": words("gate"),
        "gate_activation": words("gate_activation"),
        "connector": words("connector"),
        "init": words("init"),
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "k": [1, 2, 9],
        "renormalise": [True, False],
        "segment": [1, 3, 4, 40],
        "heads": [1, 2],
    }


AXES = axes()
LENGTH = 13
#: What reads with weights.
WEIGHED = words("aggregate", but=["none", "residual"])


def recorded(layer, inputs):
    with recording(layer) as seen:
        layer(*inputs)
    (only,) = seen
    assert only.heads == layer.heads
    assert not only.weights.requires_grad
    return only.weights


def defined(layer, inputs, monkeypatch):
    """gamma as the recurrent definition hands it to the memory: a list over time of [G, segments so far]."""
    rows = []
    weighted, mix = definition._weighted, layer.memory.mix

    def seen_weighted(memory, states, gamma_Gn, q_GK):
        rows.append(gamma_Gn.detach())
        return weighted(memory, states, gamma_Gn, q_GK)

    def seen_mix(states, weights):
        rows.append(torch.stack(weights, dim=-1).detach())
        return mix(states, weights)

    with monkeypatch.context() as patched:
        patched.setattr(definition, "_weighted", seen_weighted)
        patched.setattr(layer.memory, "mix", seen_mix)
        definition.recurrent(layer, *inputs)
    return rows


@pytest.mark.parametrize("case", pairwise({**AXES, "aggregate": WEIGHED}), ids=label)
def test_they_are_those_of_the_definition(case, monkeypatch):
    layer, inputs = layer_and_inputs(length=LENGTH, **comparable(case))
    weights = recorded(layer, inputs)
    rows = defined(layer, inputs, monkeypatch)
    assert len(rows) == LENGTH
    for t, row_Gn in enumerate(rows):
        torch.testing.assert_close(weights[:, t, : row_Gn.shape[1]], row_Gn, atol=FP64, rtol=0)
        assert (weights[:, t, row_Gn.shape[1] :] == 0).all()


@pytest.mark.parametrize(
    "case",
    pairwise({**AXES, "aggregate": WEIGHED, "segment": [1, 3, 40]}),
    ids=label,
)
def test_of_buckets_too_a_column_each_and_the_online_memory_last(case, monkeypatch):
    layer, inputs = layer_and_inputs(length=LENGTH, segmentation="log", **comparable(case))
    weights = recorded(layer, inputs)
    spans = layer._segments(LENGTH).spans
    assert weights.shape[2] == len(spans) + 1
    for t, row_Gn in enumerate(defined(layer, inputs, monkeypatch)):
        columns = [spans.index(span) for span in definition.prefix(t // case["segment"], "log")]
        expected = torch.zeros_like(weights[:, t])
        expected[:, [*columns, len(spans)]] = row_Gn
        torch.testing.assert_close(weights[:, t], expected, atol=FP64, rtol=0)


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_what_a_row_sums_to(case):
    layer, inputs = layer_and_inputs(length=LENGTH, **comparable(case))
    weights = recorded(layer, inputs)[:, :LENGTH]
    seen = torch.arange(LENGTH) // case["segment"] + 1
    read = torch.minimum(seen, torch.tensor(case["k"] + 1)) if case["aggregate"] == "ssc" else seen
    activation = "none" if case["gate"] == "none" or case["aggregate"] == "residual" else case["gate_activation"]
    assert activation == "identity" or ((weights >= 0) & (weights <= 1)).all()
    assert ((weights != 0).sum(-1) == read).all()
    whole = case["aggregate"] != "ssc" or case["renormalise"]
    sums = weights.sum(-1)
    if activation == "softmax" and whole:
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=FP64, rtol=0)
    elif activation == "softmax":
        assert (sums < 1 + FP64).all()
    elif activation == "none":
        assert torch.equal(sums, read.expand_as(sums).to(sums))


def test_a_memory_without_a_cache_has_one_column():
    layer, inputs = layer_and_inputs(length=LENGTH, aggregate="none")
    weights = recorded(layer, inputs)
    assert torch.equal(weights, torch.ones(8, LENGTH, 1, dtype=torch.float64))


@pytest.mark.parametrize("mix", ["outputs", "memories"])
def test_a_cache_after_training_weighs_what_it_reads_alike(mix):
    """13 tokens in segments of 4: up to two kept states and the online memory."""
    layer, inputs = layer_and_inputs(length=LENGTH, aggregate="none")
    with post_training(layer, AfterTraining(4, 2, mix)):
        weights = recorded(layer, inputs)
    third = 1 / 3
    rows = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [third, third, third, 0], [0, third, third, third]]
    wanted = torch.tensor(rows, dtype=torch.float64).repeat_interleave(4, 0).expand(8, -1, -1)
    torch.testing.assert_close(weights, wanted, atol=FP64, rtol=0)


@pytest.mark.parametrize(
    "case", pairwise({key: AXES[key] for key in ("aggregate", "gate", "init", "renormalise")}), ids=label
)
def test_outputs_and_gradients_are_bit_equal_while_it_is_recorded(case):
    layer, inputs = layer_and_inputs(length=LENGTH, segment=4, **case)

    def results():
        y = layer(*inputs)
        return [y, *torch.autograd.grad(y.sum(), [*inputs, *layer.parameters()], allow_unused=True)]

    alone = results()
    with recording(layer):
        beside = results()
    assert all(a is b or torch.equal(a, b) for a, b in zip(alone, beside, strict=True))


def small(**mixer):
    model = {"dim": 8, "layers": 2, "heads": 2, "mixer": mixer}
    task = {"vocab": 16, "length": 16, "pairs": [2]}
    return RunConfig.model_validate({"task": task, "model": model, "eval": {"valid": 1, "test": 1}})


def test_every_layer_of_a_model_in_its_order_and_every_pass():
    model = LM(small(name="memory", segment=4), replicas=3)
    initialise(model, range(3))
    tokens, positions = torch.zeros(3, 5, 16, dtype=torch.long), torch.zeros(3, 5, 1, dtype=torch.long)
    with recording(model) as seen, torch.no_grad():
        model(tokens, positions)
        assert [each.layer for each in seen] == [0, 1]
        assert all(each.weights.shape == (3 * 5 * 2, 16, 4) for each in seen)
        model(tokens, positions)
        assert [each.layer for each in seen] == [0, 1, 0, 1]
    model(tokens, positions)
    assert len(seen) == 4


def test_attention_has_nothing_to_record_and_one_records_at_a_time():
    with recording(LM(small(name="attention"), replicas=1)) as seen:
        assert seen == []
    layer, _ = layer_and_inputs(segment=4)
    with recording(layer), pytest.raises(ValueError, match="recorded already"), recording(layer):
        pass
    assert layer.recorder is None
    with pytest.raises(AttributeError), recording(layer):
        layer(None, None, None, None)
    assert layer.recorder is None

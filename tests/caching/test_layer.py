"""The caching layer against its definition, over the axes; the identities of Memory Caching; causality."""

import math
from typing import Any

import pytest
import torch

from mclab.caching.layer import CachingLayer
from mclab.caching.record_weights import recording
from mclab.caching.recurrent import recurrent
from mclab.config.model import MemoryMixer
from mclab.replicas.parameters import initialise
from tests.covering import full, label, pairwise
from tests.layers import assert_same_with_gradients, comparable
from tests.registries import words
from tests.tolerances import FP64


def axes() -> dict[str, list[Any]]:
    return {
        "aggregate": words("aggregate"),
        "gate": words("gate"),
        "gate_activation": words("gate_activation"),
        "connector": words("connector"),
        "init": words("init"),
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "scale": [None, 0.7],
        "k": [1, 2, 9],
        "renormalise": [True, False],
        "segment": [1, 3, 4, 40],
        "length": [1, 15, 16, 17],
        "heads": [1, 2],
        "rotary": [False, True],
    }


AXES = axes()
DIM = 8
#: What reads without weights.
UNWEIGHED = ("none", "residual")


def layer_and_inputs(length=13, trained=None, heads=2, replicas=2, batch=2, **mixer):
    layer = CachingLayer(replicas, DIM, heads, trained or length, MemoryMixer(**mixer))
    initialise(layer, range(replicas))
    generator = torch.Generator().manual_seed(length)
    inputs = [
        torch.randn(replicas, batch, length, DIM, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(4)
    ]
    return layer.double(), inputs


def read(layer, inputs, rotary=False):
    return layer(*inputs, rotary)


def assert_equals_definition(case):
    axes = comparable(dict(case))
    rotary = axes.pop("rotary")
    layer, inputs = layer_and_inputs(**axes)
    fast, slow = layer(*inputs, rotary), recurrent(layer, *inputs, rotary)
    assert_same_with_gradients(fast, slow, [*inputs, *layer.parameters()], rtol=0)


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_equals_definition(case):
    assert_equals_definition(case)


@pytest.mark.product
def test_equals_definition_everywhere():
    for case in full(
        AXES | {"gate_activation": ["softmax"], "length": [1, 17], "scale": [None], "heads": [2], "segment": [1, 4, 40]}
    ):
        assert_equals_definition(case)


def test_three_tokens_by_hand():
    """K = V = 1, segments {0, 1} and {2}, shared connector, sum pool, scale 1: every number is worked out by hand.

    Keys 1, 2, 3 and values 5, 7, 11, all queries 0.1. Token 2 sees segment 0 (state 5 + 14 = 19, pool 3) and its own
    (state 33, pool 3): equal scores 0.3, so both weights are one half, and y = (19 + 33) / 2 * 0.1 = 2.6.
    """
    mixer = MemoryMixer(segment=2, aggregate="grm", gate="context", connector="shared", pool="sum", scale=1.0)
    layer = CachingLayer(1, 1, 1, 3, mixer)
    q = torch.full((1, 1, 3, 1), 0.1, dtype=torch.float64)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).view(1, 1, 3, 1)
    v = torch.tensor([5.0, 7.0, 11.0], dtype=torch.float64).view(1, 1, 3, 1)
    for path in (layer, lambda *a: recurrent(layer, *a)):
        y = path(q, q, k, v).flatten()
        torch.testing.assert_close(y, torch.tensor([0.5, 1.9, 2.6], dtype=torch.float64), atol=FP64, rtol=0)


@pytest.mark.parametrize(("pool", "scale"), [("mean", None), ("sum", None), ("mean", 0.5)])
def test_pools_of_inputs_by_hand(pool, scale):
    """Token 3 of segments {0, 1} and {2, 3}; two heads, each with its half of x and of u = x W_u. Without `scale` the
    factor is 1: inputs are as long as sqrt(K) already."""
    layer, (x, q, k, v) = layer_and_inputs(length=4, segment=2, pool=pool, pool_of="inputs", scale=scale, batch=1)
    factor = (0.5 if pool == "mean" else 1.0) * (scale or 1.0)
    u = torch.einsum("rbtd,rde->rbte", x, layer.connector.project.weight)
    with recording(layer) as seen:
        layer(x, q, k, v)
    for r in range(2):
        for h in range(2):
            part = slice(4 * h, 4 * h + 4)
            pools = [x[r, 0, a : a + 2, part].sum(0) * factor for a in (0, 2)]
            logits = torch.stack([u[r, 0, 3, part] @ each for each in pools])
            torch.testing.assert_close(seen[0].weights[2 * r + h, 3], logits.softmax(0), atol=FP64, rtol=0)


@pytest.mark.parametrize("aggregate", words("aggregate", but=UNWEIGHED))
@pytest.mark.parametrize(
    ("activation", "weights"),
    [("identity", (0.1, 0.3, 0.3)), ("sigmoid", (1 / (1 + math.exp(-0.1)), *[1 / (1 + math.exp(-0.3))] * 2))],
)
def test_three_tokens_by_hand_under_every_activation(activation, weights, aggregate):
    """As above. Token 0 scores 0.1 with its own pool 1, token 1 scores 0.3 with its own pool 3; reads are 0.5, 1.9, and
    1.9 + 3.3 of two memories of equal weight."""
    mixer = MemoryMixer(
        segment=2, aggregate=aggregate, gate_activation=activation, connector="shared", pool="sum", scale=1.0
    )
    layer = CachingLayer(1, 1, 1, 3, mixer)
    q = torch.full((1, 1, 3, 1), 0.1, dtype=torch.float64)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).view(1, 1, 3, 1)
    v = torch.tensor([5.0, 7.0, 11.0], dtype=torch.float64).view(1, 1, 3, 1)
    wanted = torch.tensor(weights, dtype=torch.float64) * torch.tensor([0.5, 1.9, 5.2], dtype=torch.float64)
    for path in (layer, lambda *a: recurrent(layer, *a)):
        torch.testing.assert_close(path(q, q, k, v).flatten(), wanted, atol=FP64, rtol=0)


@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
def test_without_a_softmax_ssc_still_selects_by_score_and_has_nothing_to_renormalise(activation):
    """What a chosen memory weighs does not depend on what else is chosen; the weights zero where grm has them are not
    those of the k best scores."""
    keys = {"segment": 3, "gate_activation": activation, "route": "hard"}
    ssc, inputs = layer_and_inputs(aggregate="ssc", k=1, **keys)
    full, _ = layer_and_inputs(aggregate="ssc", k=1, renormalise=False, **keys)
    assert torch.equal(ssc(*inputs), full(*inputs))
    soft, _ = layer_and_inputs(aggregate="ssc", k=1, segment=3, route="hard")
    grm, _ = layer_and_inputs(aggregate="grm", **keys)
    found = []
    for layer in (ssc, soft, grm):
        with recording(layer) as seen:
            layer(*inputs)
        found.append(seen[0].weights[:, :13])
    assert torch.equal(found[0] != 0, found[1] != 0)
    torch.testing.assert_close(found[0], found[2] * (found[1] != 0), atol=FP64, rtol=0)


@pytest.mark.parametrize(
    "case", pairwise({k: AXES[k] for k in ("aggregate", "gate", "connector", "init", "pool")}), ids=label
)
def test_causal(case):
    """Changing token t changes nothing before t."""
    layer, inputs = layer_and_inputs(length=13, segment=4, **case)
    before = read(layer, inputs)
    for t in range(13):
        changed = [x.detach().clone() for x in inputs]
        for x in changed:
            x[:, :, t] += 1.0
        after = read(layer, changed)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=FP64, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])


@pytest.mark.parametrize("gate", words("gate", but=["none"]))
@pytest.mark.parametrize("aggregate", words("aggregate", but=UNWEIGHED))
def test_one_segment_is_the_plain_memory(gate, aggregate):
    layer, inputs = layer_and_inputs(segment=13, gate=gate, aggregate=aggregate)
    plain, _ = layer_and_inputs(aggregate="none")
    torch.testing.assert_close(read(layer, inputs), read(plain, inputs), atol=FP64, rtol=0)


@pytest.mark.parametrize("aggregate", words("aggregate", but=["none"]))
def test_checkpoint_is_restart_on_the_first_segment_and_not_after(aggregate):
    restart, inputs = layer_and_inputs(segment=4, aggregate=aggregate, init="restart")
    checkpoint, _ = layer_and_inputs(segment=4, aggregate=aggregate, init="checkpoint")
    a, b = read(restart, inputs), read(checkpoint, inputs)
    torch.testing.assert_close(a[:, :, :4], b[:, :, :4], atol=FP64, rtol=0)
    assert (a[:, :, 4:] - b[:, :, 4:]).abs().max() > 1e-3


@pytest.mark.parametrize("gate", words("gate"))
def test_soup_is_grm_at_depth_one(gate):
    soup, inputs = layer_and_inputs(segment=4, gate=gate, aggregate="soup")
    grm, _ = layer_and_inputs(segment=4, gate=gate, aggregate="grm")
    torch.testing.assert_close(recurrent(soup, *inputs), recurrent(grm, *inputs), atol=FP64, rtol=0)


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("gate", words("gate"))
def test_ssc_is_grm_when_k_covers_the_past(gate, renormalise):
    ssc, inputs = layer_and_inputs(segment=4, gate=gate, aggregate="ssc", k=3, renormalise=renormalise)
    grm, _ = layer_and_inputs(segment=4, gate=gate, aggregate="grm")
    few, _ = layer_and_inputs(segment=4, gate=gate, aggregate="ssc", k=1, renormalise=renormalise)
    torch.testing.assert_close(read(ssc, inputs), read(grm, inputs), atol=FP64, rtol=0)
    assert (read(few, inputs) - read(grm, inputs)).abs().max() > 1e-3


@pytest.mark.parametrize("case", [{"aggregate": "grm"}, {"aggregate": "ssc", "k": 9}, {"aggregate": "soup"}], ids=label)
def test_no_gate_is_residual(case):
    gateless, inputs = layer_and_inputs(segment=4, gate="none", **case)
    residual, _ = layer_and_inputs(segment=4, aggregate="residual")
    torch.testing.assert_close(read(gateless, inputs), read(residual, inputs), atol=FP64, rtol=0)


def test_residual_restart_is_plain_linear_attention_and_checkpoint_is_not():
    plain, inputs = layer_and_inputs(aggregate="none")
    restart, _ = layer_and_inputs(segment=4, aggregate="residual", init="restart")
    checkpoint, _ = layer_and_inputs(segment=4, aggregate="residual", init="checkpoint")
    torch.testing.assert_close(read(restart, inputs), read(plain, inputs), atol=FP64, rtol=0)
    assert (read(checkpoint, inputs) - read(plain, inputs)).abs().max() > 1e-3


@pytest.mark.parametrize("aggregate", words("aggregate", but=UNWEIGHED))
def test_a_longer_sequence_reuses_the_last_input_logit(aggregate):
    """Trained on 8 tokens (2 segments), read on 13 (4 segments)."""
    layer, inputs = layer_and_inputs(length=13, trained=8, segment=4, gate="input", aggregate=aggregate)
    torch.testing.assert_close(read(layer, inputs), recurrent(layer, *inputs), atol=FP64, rtol=0)

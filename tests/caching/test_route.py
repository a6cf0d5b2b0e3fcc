"""What teaches ssc its choice: every route is its definition, and reads what `hard` reads."""

import math
from typing import Any

import pytest
import torch

from mclab.caching.gate_output import RouteStep
from mclab.caching.recurrent import recurrent
from mclab.caching.route import draw, select
from tests.caching import test_layer, test_memories
from tests.covering import label, pairwise
from tests.layers import assert_same_with_gradients, comparable
from tests.registries import words
from tests.tolerances import FP64


def axes() -> dict[str, list[Any]]:
    return {
        "route": words("route"),
        "gate": words("gate"),
        "gate_activation": words("gate_activation"),
        "early": [True, False],
        "memory": words("memory"),
        "segmentation": words("segmentation"),
        "segment_lengths": [(2, 4, 2), (3, 1)],
        "connector": words("connector"),
        "init": words("init"),
        "renormalise": [True, False],
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "k": [1, 2, 9],
        "segment": [1, 3, 40],
        "length": [1, 13, 16],
        "heads": [1, 2],
    }


AXES = axes()
GATES = words("gate")


def in_training(layer, draws=None, *, early=False, length=13, sequences=2):
    """As in a step of training; draws are random unless given."""
    folded, padded = sequences * layer.heads, length + -length % layer.mixer.block
    if draws is None:
        generator = torch.Generator().manual_seed(7)
        draws = torch.randint(2**31, (folded, padded), generator=generator, dtype=torch.int64).int()
    layer.route_step = RouteStep(early, draws)
    return layer


def layer_and_inputs(length=13, **mixer):
    """Two replicas of one sequence each."""
    layer, inputs = test_memories.layer_and_inputs(length=length, **{"aggregate": "ssc", "segment": 2, "k": 1} | mixer)
    return in_training(layer, length=length), inputs


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_equals_definition(case):
    axes = comparable(dict(case))
    early = axes.pop("early")
    layer, inputs = layer_and_inputs(**axes)
    in_training(layer, early=early, length=case["length"])
    assert_same_with_gradients(layer(*inputs), recurrent(layer, *inputs), [*inputs, *layer.parameters()])


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("route", words("route", but=["hard"]))
def test_what_is_read_is_what_hard_reads(route, gate):
    """To the last bit: in training, and without a step of training, as in evaluation."""
    keys = {"gate": gate, "connector": "shared", "memory": "titans"}
    layer, inputs = layer_and_inputs(route=route, **keys)
    hard, _ = layer_and_inputs(route="hard", **keys)
    assert torch.equal(layer(*inputs), hard(*inputs))
    layer.route_step = None
    assert torch.equal(layer(*inputs), hard(*inputs))
    with torch.no_grad():
        assert torch.equal(layer(*inputs), hard(*inputs))


def test_annealed_is_grm_early():
    layer, inputs = layer_and_inputs(route="annealed")
    grm, _ = layer_and_inputs(aggregate="grm")
    in_training(layer, early=True)
    assert_same_with_gradients(layer(*inputs), grm(*inputs), inputs)


def gradients(layer, inputs):
    y = layer(*inputs)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.autograd.grad(y, [*inputs, *layer.parameters()], upstream)


@pytest.mark.parametrize("segmentation", words("segmentation", but=["listed"]))
@pytest.mark.parametrize("gate", GATES)
def test_the_mean_over_all_draws_is_straight_through(gate, segmentation):
    """Six kept memories at most, of which five are not chosen: 60 draws meet each of 1 ... 5 equally often."""
    keys = {"gate": gate, "segmentation": segmentation, "memory": "titans", "length": 13}
    explore, inputs = layer_and_inputs(route="explore", **keys)
    through, _ = layer_and_inputs(route="straight_through", **keys)
    total = None
    for i in range(60):
        in_training(explore, torch.full((4, 14), (2 * i + 1) * 2**31 // 120, dtype=torch.int64).int())
        found = gradients(explore, inputs)
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    for mean, wanted in zip(total, gradients(through, inputs), strict=True):
        torch.testing.assert_close(mean / 60, wanted, atol=FP64, rtol=FP64)


@pytest.mark.parametrize("gate", GATES)
def test_straight_through_by_hand(gate):
    """K = 1, segments of one token, shared connector, sum pool: the gradient of the last token's query, by its formula.

    Keys are 1, 2, 3 and 0.5, so scores are those times u = q, and memories are k v. Of the three kept the third is
    chosen. Everything that was not chosen counts in the gradient of the scores, and nothing of it in the output.
    """
    layer, _ = test_layer.layer_and_inputs(
        length=4, heads=1, replicas=1, batch=1, aggregate="ssc", segment=1, k=1, route="straight_through", gate=gate,
        connector="shared", pool="sum",
    )  # fmt: skip
    k, v = (torch.zeros(1, 1, 4, 8, dtype=torch.float64) for _ in range(2))
    k[0, 0, :, 0] = torch.tensor([1.0, 2.0, 3.0, 0.5])
    v[0, 0, :, 0] = torch.tensor([5.0, -7.0, 11.0, 13.0])
    q = torch.zeros(1, 1, 4, 8, dtype=torch.float64).index_fill(-1, torch.tensor([0]), 0.2).requires_grad_()
    x = torch.zeros_like(k)  # the input gate's logits are all zero
    y = layer(x, q, k, v)[0, 0, 3, 0]
    keys, reads = k[0, 0, :, 0], 0.2 * (k * v)[0, 0, :, 0]
    scores = 0.2 * keys
    if gate == "none":
        sharp, soft = torch.tensor([0.0, 0, 1, 1]), torch.cat((scores[:3].softmax(0), torch.zeros(1)))
    else:
        sharp = torch.tensor([0.0, 0, *(scores[2:] if gate == "context" else torch.zeros(2)).softmax(0)])
        soft = scores.softmax(0)
    assert y.item() == pytest.approx((sharp * reads).sum().item(), abs=FP64)
    # d soft_i / d q = soft_i (key_i - sum soft key); without a gate the online memory has none.
    turned = soft * (keys - (soft * keys).sum())
    wanted = (sharp * reads / 0.2).sum() + (turned * reads).sum()
    assert torch.autograd.grad(y, q)[0][0, 0, 3, 0].item() == pytest.approx(wanted.item(), abs=FP64)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("route", ["explore", "straight_through", "annealed", "hard"])
def test_a_memory_that_was_left_out_teaches_the_scores(route, gate):
    """The last two tokens see two segments and choose one. The keys of the other are in no output but by their pool."""
    layer, (x, q, k, v) = layer_and_inputs(route=route, gate=gate, length=6, heads=1)
    in_training(layer, early=True, length=6)
    (grad,) = torch.autograd.grad(layer(x, q, k, v)[:, :, 5].sum(), [k])
    told = (grad[:, 0, :4] != 0).unflatten(1, (2, 2)).flatten(2).any(-1).sum(-1)
    assert told.tolist() == ([1, 1] if route == "hard" else [2, 2])


def test_hard_has_a_projection_for_scores_only_where_a_gate_teaches_it():
    for gate in GATES:
        layer, _ = layer_and_inputs(route="hard", gate=gate)
        assert any("connector" in name for name, _ in layer.named_parameters()) == (gate == "context")


def test_what_is_drawn_by_hand():
    """Four kept memories and the online one; of the two that are not chosen each gets half of the draws."""
    own_TN = torch.tensor([[True, *[False] * 4], [False] * 4 + [True]])
    past_TN = torch.tensor([[False] * 5, [True] * 4 + [False]])
    columns = select(torch.tensor([[[0.0] * 5, [1, 4, 2, 3, 9]]]), past_TN, own_TN, 2)
    assert columns.tolist() == [[[0, 0, 0], [1, 3, 4]]]
    for number, place in ((0, 0), (2**30 - 1, 0), (2**30, 2), (2**31 - 1, 2)):
        drawn, count = draw(torch.full((1, 2), number, dtype=torch.int32), past_TN, columns)
        assert (drawn.flatten().tolist(), count.flatten().tolist()) == ([0, place], [0, 2])


def test_nothing_is_drawn_where_all_are_chosen():
    """Then it is `grm`, gradients too."""
    layer, inputs = layer_and_inputs(route="explore", k=math.ceil(13 / 2))
    grm, _ = layer_and_inputs(aggregate="grm")
    assert_same_with_gradients(layer(*inputs), grm(*inputs), inputs)

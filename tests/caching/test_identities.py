"""Identities between memories and ways of caching them (docs/equations.md#identities)."""

import pytest
import torch

from mclab.memories import MEMORIES
from tests.caching.test_memories import DEEP, DIM, UNWEIGHED, layer_and_inputs
from tests.registries import words
from tests.tolerances import FP64


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("aggregate", words("aggregate", but=UNWEIGHED))
def test_one_segment_is_the_plain_memory(memory, aggregate):
    layer, inputs = layer_and_inputs(segment=13, chunk=4, memory=memory, aggregate=aggregate)
    plain, _ = layer_and_inputs(chunk=4, memory=memory, aggregate="none")
    torch.testing.assert_close(layer(*inputs), plain(*inputs), atol=FP64, rtol=0)


@pytest.mark.parametrize("memory", MEMORIES)
def test_checkpoint_is_restart_on_the_first_segment_and_not_after(memory):
    restart, inputs = layer_and_inputs(segment=4, memory=memory, init="restart")
    checkpoint, _ = layer_and_inputs(segment=4, memory=memory, init="checkpoint")
    a, b = restart(*inputs), checkpoint(*inputs)
    torch.testing.assert_close(a[:, :, :4], b[:, :, :4], atol=FP64, rtol=0)
    assert (a[:, :, 4:] - b[:, :, 4:]).abs().max() > 1e-3


@pytest.mark.parametrize("memory", MEMORIES)
def test_soup_is_grm_at_depth_one(memory):
    soup, inputs = layer_and_inputs(segment=4, memory=memory, depth=1, aggregate="soup")
    grm, _ = layer_and_inputs(segment=4, memory=memory, depth=1, aggregate="grm")
    torch.testing.assert_close(soup(*inputs), grm(*inputs), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("memory", DEEP)
def test_soup_is_not_grm_in_a_deep_memory(memory):
    soup, inputs = layer_and_inputs(segment=4, memory=memory, aggregate="soup")
    grm, _ = layer_and_inputs(segment=4, memory=memory, aggregate="grm")
    assert (soup(*inputs) - grm(*inputs)).abs().max() > 1e-3


@pytest.mark.parametrize("segmentation", words("segmentation", but=["listed"]))
@pytest.mark.parametrize("memory", MEMORIES)
def test_ssc_is_grm_when_k_covers_the_past_and_no_gate_is_residual(memory, segmentation):
    """Four kept segments at most."""
    grm, inputs = layer_and_inputs(segment=3, segmentation=segmentation, memory=memory)
    ssc, _ = layer_and_inputs(segment=3, segmentation=segmentation, memory=memory, aggregate="ssc", k=4)
    torch.testing.assert_close(ssc(*inputs), grm(*inputs), atol=FP64, rtol=FP64)
    gateless, _ = layer_and_inputs(segment=3, segmentation=segmentation, memory=memory, gate="none")
    residual, _ = layer_and_inputs(segment=3, segmentation=segmentation, memory=memory, aggregate="residual")
    torch.testing.assert_close(gateless(*inputs), residual(*inputs), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("memory", MEMORIES)
def test_two_segments_are_one_bucket(memory):
    """With one kept segment both ways of cutting keep the same."""
    constant, inputs = layer_and_inputs(segment=7, memory=memory)
    log, _ = layer_and_inputs(segment=7, memory=memory, segmentation="log")
    torch.testing.assert_close(log(*inputs), constant(*inputs), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("init", ["restart", "checkpoint"])
def test_vector_memory_with_segments_of_one_token_is_softmax_attention(init):
    """docs/equations.md#identities: q * (b + softmax attention of u over k, values k or their running sums)."""
    layer, (x, q, k, v) = layer_and_inputs(
        heads=1, segment=1, memory="vector", connector="shared", pool="sum", scale=0.7, init=init
    )
    scores = 0.7 * q @ k.mT
    weights = scores.masked_fill(torch.ones(13, 13).triu(1).bool(), -torch.inf).softmax(-1)
    values = k if init == "restart" else k.cumsum(2)
    bias = layer.memory.bias[:, None]
    torch.testing.assert_close(layer(x, q, k, v), q * (bias + weights @ values), atol=FP64, rtol=0)


def test_dla_with_unit_steps_is_the_linear_memory():
    """docs/equations.md#identities: eta = sigmoid(0) * 2 / 1 = 1."""
    dla, inputs = layer_and_inputs(segment=4, memory="dla", depth=1, chunk=1, max_lr=2.0)
    linear, _ = layer_and_inputs(segment=4)
    for value in (dla.memory.project, dla.memory.bias):
        value.data.zero_()
    torch.testing.assert_close(dla(*inputs), linear(*inputs), atol=FP64, rtol=0)


def test_titans_without_momentum_and_decay_is_the_delta_rule():
    """docs/equations.md#identities: S_t = S_{t-1} (I - beta k k^T) + beta v k^T, beta = 2 eta, as a token loop."""
    layer, inputs = layer_and_inputs(heads=1, memory="titans", depth=1, chunk=1, aggregate="none", max_lr=0.3)
    layer.memory.project.data.zero_()
    layer.memory.bias.data.copy_(torch.tensor([0.0, 60.0, -60.0]))  # eta = 0.15, alpha = 1, beta of momentum = 0
    _, q, k, v = (z[:, 0] for z in inputs)
    state = torch.zeros(2, DIM, DIM, dtype=torch.float64)
    for t in range(13):
        kt, vt = k[:, t, :, None], v[:, t, :, None]
        state = state @ (torch.eye(DIM) - 0.3 * kt @ kt.mT) + 0.3 * vt @ kt.mT
        torch.testing.assert_close(
            (state @ q[:, t, :, None]).squeeze(-1), layer(*inputs)[:, 0, t], atol=FP64, rtol=FP64
        )


def test_a_gated_delta_rule_that_forgets_nothing_is_the_delta_rule():
    gated, inputs = layer_and_inputs(segment=4, memory="gated_delta")
    delta, _ = layer_and_inputs(segment=4, memory="delta")
    gated.memory.A_log.data.fill_(-60.0)
    delta.memory.project.data.copy_(gated.memory.project.data[..., ::2])
    delta.memory.bias.data.copy_(gated.memory.bias.data[..., 0])
    torch.testing.assert_close(gated(*inputs), delta(*inputs), atol=FP64, rtol=FP64)


def test_all_buckets_of_the_linear_memory_are_its_past():
    residual, inputs = layer_and_inputs(segment=3, segmentation="log", aggregate="residual", memory="linear")
    plain, _ = layer_and_inputs(aggregate="none", memory="linear")
    torch.testing.assert_close(residual(*inputs), plain(*inputs), atol=FP64, rtol=FP64)


@pytest.mark.parametrize(("depth", "same"), [(1, True), (2, False)])
def test_forgetting_leads_back_to_a_start_that_is_zero_at_depth_one(depth, same):
    start, inputs = layer_and_inputs(segment=4, memory="titans", depth=depth)
    zero, _ = layer_and_inputs(segment=4, memory="titans", depth=depth, decay_to="zero")
    assert torch.equal(start(*inputs), zero(*inputs)) == same

"""A cache for a model that was trained without one (docs/equations.md#after-training)."""

import pytest
import torch

from mclab.caching.post_training import AfterTraining, post_training
from mclab.memories import MEMORIES
from mclab.memories.base import State
from mclab.replicas.layers import rotate
from tests.caching.test_memories import DEEP, layer_and_inputs
from tests.tolerances import FP64


@pytest.mark.parametrize("mix", ["outputs", "memories"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_caching_after_training_averages_the_last_states(memory, mix):
    """Segments of 4 on 13 tokens, the last two kept states and the online one, by a token loop: the mean of what is
    read of them, or what is read of their mean."""
    layer, inputs = layer_and_inputs(aggregate="none", memory=memory, chunk=2)
    x, q, k, v = inputs
    rule = layer.memory
    q_GTK, k_GTK, v_GTV = (layer._fold(z) for z in (q, k, v))
    if layer.mixer.rule.rotary:
        q_GTK, k_GTK = rotate(q_GTK), rotate(k_GTK)
    tokens = rule.tokens(x, k_GTK, v_GTV)
    state, kept, wanted = rule.initial(tokens), [], []
    for t in range(13):
        if t and t % 4 == 0:
            kept.append(state)
            state = rule.begin(state)
        state = rule.step(state, tokens.at(t))
        states, query = [*kept[-2:], state], q_GTK[:, t]
        if mix == "outputs":
            wanted.append(torch.stack([rule.read(s, query) for s in states]).mean(0))
        else:
            layers = zip(*(s.weights for s in states), strict=True)
            wanted.append(rule.read(State(tuple(torch.stack(each).mean(0) for each in layers)), query))
    before = layer(*inputs)
    with post_training(layer, AfterTraining(4, 2, mix)):
        found = layer(*inputs)
    skipped = rule.skip(tokens)
    expected = torch.stack(wanted, 1) + (0 if skipped is None else skipped)
    torch.testing.assert_close(layer._fold(found), expected, atol=FP64, rtol=FP64)
    assert torch.equal(layer(*inputs), before)


@pytest.mark.parametrize(("depth", "same"), [(1, True), (2, False)])
@pytest.mark.parametrize("memory", DEEP)
def test_after_training_means_of_memories_and_of_outputs_differ_in_deep_ones(memory, depth, same):
    layer, inputs = layer_and_inputs(aggregate="none", memory=memory, depth=depth, chunk=2)
    with post_training(layer, AfterTraining(4, 2, "outputs")):
        outputs = layer(*inputs)
    with post_training(layer, AfterTraining(4, 2, "memories")):
        memories = layer(*inputs)
    assert bool((outputs - memories).abs().max() < FP64) == same

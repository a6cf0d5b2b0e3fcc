"""Every memory in the caching layer: equal to its definition over the axes, causal, and the identities between them."""

from typing import Any

import pytest
import torch

from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.caching.post_training import AfterTraining, post_training
from mclab.caching.recurrent import recurrent
from mclab.config.model import RULES, MemoryMixer
from mclab.kernels.fastweight.net import gelu_slope
from mclab.memories import MEMORIES
from mclab.memories.base import State
from mclab.replicas.layers import rotate
from mclab.replicas.parameters import initialise
from tests.covering import full, label, pairwise
from tests.layers import assert_causal, assert_same_with_gradients, comparable, largest_over_a_long_sequence
from tests.registries import words
from tests.tolerances import FP64


def axes() -> dict[str, list[Any]]:
    return {
        "memory": words("memory"),
        "depth": [1, 2, 3],
        "chunk": [1, 4, 16],
        "segmentation": words("segmentation"),
        "segment_lengths": [(2, 4, 2), (6, 3), (5,), (1, 40)],
        "aggregate": words("aggregate"),
        "gate": words("gate"),
        "gate_activation": words("gate_activation"),
        "init": words("init"),
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "decay_to": words("decay_to"),
        "memory_norm": words("memory_norm"),
        "segment": [1, 3, 5, 40],
        "length": [1, 13, 16, 17],
        "heads": [1, 2],
    }


AXES = axes()
DIM = 8
#: What reads without weights.
UNWEIGHED = ("none", "residual")
DEEP = [memory for memory, rule in RULES.items() if rule.may_be_deep]


def layer_and_inputs(length=13, heads=2, replicas=2, batch=1, **mixer):
    """Rates far from their starts, so that no product of them is near 0 or 1; queries and keys of about unit length, as
    the model's are: with longer ones Titans without a norm runs away, in the definition as in the chunk form.
    """
    layer = CachingLayer(replicas, DIM, heads, length, MemoryMixer(**mixer))
    initialise(layer, range(replicas))
    generator = torch.Generator().manual_seed(length)
    for name, value in layer.named_parameters():
        if name.endswith("bias"):
            value.data.copy_(torch.randn(value.shape, generator=generator))
    shape = (replicas, batch, length, DIM)
    inputs = [
        (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
        for scale in (1.0, 0.35, 0.35, 1.0)
    ]
    return layer.double(), inputs


def sensible(case):
    """Mixing weights without a gate means nothing in a deep memory, and the config refuses it."""
    case = comparable(case)
    deep = case["memory"] in DEEP and case["depth"] > 1
    return case | {"gate": "context"} if deep and (case["aggregate"], case["gate"]) == ("soup", "none") else case


def assert_equals_definition(case):
    layer, inputs = layer_and_inputs(**sensible(case))
    fast, slow = layer(*inputs), recurrent(layer, *inputs)
    assert_same_with_gradients(fast, slow, [*inputs, *layer.parameters()])


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_equals_definition(case):
    assert_equals_definition(case)


@pytest.mark.product
def test_equals_definition_everywhere():
    some = {"pool": ["mean"], "length": [17], "heads": [2], "segment": [3, 5, 40], "depth": [1, 2]}
    some |= {"gate_activation": ["softmax"]}
    for case in full(AXES | some):
        assert_equals_definition(case)


@pytest.mark.parametrize(
    "case",
    pairwise(
        {k: AXES[k] for k in ("memory", "depth", "segmentation", "segment_lengths", "aggregate", "init", "chunk")}
    ),
    ids=label,
)
def test_causal(case):
    assert_causal(*layer_and_inputs(segment=3, **case), places=(0, 1, 5, 6, 11, 12))


@pytest.mark.parametrize("memory", [memory for memory, rule in RULES.items() if not rule.formed])
@pytest.mark.parametrize("aggregate", words("aggregate", but=UNWEIGHED))
def test_listed_segments_need_no_value_of_a_tensor(memory, aggregate):
    """A meta tensor holds no data: what would read one back from a device, which stops a CUDA graph, fails on it. (A
    memory whose weights are formed asks how large its blocks may be.)"""
    for init in INITS:
        keys = {"segmentation": "listed", "segment_lengths": (2, 4, 2), "init": init, "chunk": 2, "route": "hard"}
        layer, inputs = layer_and_inputs(memory=memory, aggregate=aggregate, **keys)
        on_meta = [z.detach().to("meta").requires_grad_() for z in inputs]
        y = layer.to("meta")._read(*on_meta, False)  # torch has no autocast for meta
        torch.autograd.grad(y.sum(), on_meta, allow_unused=True)


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


@pytest.mark.parametrize(("init", "sees"), [("restart", False), ("checkpoint", True)])
def test_the_window_of_swla_stops_at_a_restart(init, sees):
    """Nothing but the look back is written: token 4 opens a segment and shows token 3 only where that goes on."""
    layer, (x, q, k, v) = layer_and_inputs(segment=4, memory="swla", aggregate="ssc", gate="none", k=1, init=init)
    layer.memory.project.data.zero_()
    layer.memory.bias.data.copy_(torch.tensor([-60.0, 60.0, -60.0]))
    online_only = torch.zeros(4, 16, 4, dtype=torch.float64).scatter_(
        2, (torch.arange(16) // 4)[None, :, None].expand(4, -1, 1), 1.0
    )
    folded = [layer._fold(torch.nn.functional.pad(z, (0, 0, 0, 3))) for z in (q, k, v)]
    tokens = layer.memory.tokens(torch.nn.functional.pad(x, (0, 0, 0, 3)), folded[1], folded[2])
    y = layer.memory.write(tokens, layer._segments(13), INITS[init]).read(folded[0], online_only)
    assert bool(y[:, 4].abs().max() > 1e-3) == sees
    assert y[:, 5].abs().max() > 1e-3


def test_gelu_slope_is_the_derivative():
    z = torch.linspace(-6, 6, 41, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.nn.functional.gelu(z).sum(), z)
    torch.testing.assert_close(gelu_slope(z), slope, atol=FP64, rtol=0)


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


@pytest.mark.parametrize("init", words("init"))
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("memory", DEEP)
def test_a_long_sequence_overflows_nothing(memory, depth, init):
    """titans-pytorch#22, #29: NaN at depth 4, at length 4096."""
    mixer = MemoryMixer(memory=memory, depth=depth, init=init, segment=512, aggregate="grm")
    # What decays or is normed stays near its values; a DLA of one matrix only adds, so it grows with the length.
    assert largest_over_a_long_sequence(mixer) < (4096 if (memory, depth) == ("dla", 1) else 100)


@pytest.mark.parametrize("keys", [{"aggregate": "none"}, {"aggregate": "grm", "segment": 64}])
@pytest.mark.parametrize("memory", ["dla", "titans", "memora"])
def test_a_chunk_longer_than_the_sequence_is_the_sequence(memory, keys):
    """Otherwise the step size would be divided by tokens that do not exist."""
    (longer, inputs), (exact, _) = (layer_and_inputs(memory=memory, chunk=chunk, **keys) for chunk in (40, 13))
    torch.testing.assert_close(longer(*inputs), exact(*inputs), rtol=0, atol=0)
    torch.testing.assert_close(recurrent(longer, *inputs), exact(*inputs), rtol=0, atol=FP64)

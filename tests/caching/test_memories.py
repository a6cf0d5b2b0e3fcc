"""Every memory in the caching layer: equal to its definition over the axes, causal, finite on long sequences."""

from typing import Any

import pytest
import torch

from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.caching.recurrent import recurrent
from mclab.config.model import RULES, MemoryMixer
from mclab.kernels.fastweight.net import gelu_slope
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

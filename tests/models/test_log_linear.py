"""Log-linear attention as a mixer: against the rule of its memory token by token, and what it costs."""

from typing import get_args

import pytest
import torch
from torch.nn import functional as F

from mclab.config.model import LevelRule, LogLinearMixer
from mclab.config.params import parameters, state_floats
from mclab.config.parse import parse_run
from mclab.kernels.log_linear.chunkwise import level
from mclab.models.lm import LM
from mclab.models.log_linear import RULES, LogLinearRead
from mclab.replicas.layers import linear
from mclab.replicas.parameters import initialise
from tests.layers import assert_causal, assert_same_with_gradients
from tests.tolerances import FP64

R, B, D, H = 2, 1, 8, 2
EVERY = list(get_args(LevelRule))


def layer_and_inputs(rule, length, trained=None):
    layer = LogLinearRead(R, D, H, trained or length, LogLinearMixer(rule=rule))
    initialise(layer, range(R))
    generator = torch.Generator().manual_seed(length)
    for name, value in layer.named_parameters():
        if value.dim() < 3 or "bias" in name or name.endswith(("D", "log")):
            value.data += torch.randn(value.shape, generator=generator)
    inputs = [torch.randn(R, B, length, D, generator=generator, dtype=torch.float64) for _ in range(4)]
    inputs[1:3] = [F.normalize(z, dim=-1) for z in inputs[1:3]]
    return layer.double(), [z.requires_grad_() for z in inputs]


def held_by_definition(layer, x, q, k, v):
    """Every token's states by level, and its output: a token without a value moves a state on and writes nothing."""
    memory = layer.memory
    q_GTK, k_GTK, v_GTV = (layer._fold(z) for z in (q, k, v))
    tokens = memory.tokens(x, k_GTK, v_GTV)
    logits = linear(x, layer.project).unflatten(-1, (H, -1)) * layer.level[:, None, None]
    weights = F.softplus(logits).transpose(2, 3).flatten(0, 2)
    buckets, outputs = {}, []
    for t in range(x.shape[2]):
        token = tokens.at(t)
        past = {n: memory.step(state, token._replace(v=0 * token.v)) for n, state in buckets.items()}
        buckets = past | {t: memory.step(memory.initial(tokens), token)}
        by_level = {}
        for s, state in buckets.items():
            by_level.setdefault(min(level(t, s), weights.shape[-1] - 1), []).append(state)
        reads = [
            weights[:, t, level, None] * memory.read(state, q_GTK[:, t])
            for level, states in by_level.items()
            for state in states
        ]
        outputs.append(torch.stack(reads).sum(0))
    y = torch.stack(outputs, 1)
    skipped = memory.skip(tokens)
    y = y if skipped is None else y + skipped
    return y.unflatten(0, (R, B, H)).transpose(2, 3).flatten(-2), by_level


@pytest.mark.parametrize("length", [1, 13, 65])
@pytest.mark.parametrize("rule", EVERY)
def test_equals_its_rule_token_by_token(rule, length):
    layer, inputs = layer_and_inputs(rule, length)
    fast, (slow, _) = layer(*inputs), held_by_definition(layer, *inputs)
    assert_same_with_gradients(fast, slow, [*inputs, *layer.parameters()])


@pytest.mark.parametrize("rule", EVERY)
def test_beyond_the_trained_length_the_last_level_is_used_again(rule):
    layer, inputs = layer_and_inputs(rule, 40, trained=8)
    torch.testing.assert_close(layer(*inputs), held_by_definition(layer, *inputs)[0], atol=FP64, rtol=FP64)


@pytest.mark.parametrize("rule", EVERY)
def test_sees_no_future(rule):
    assert_causal(*layer_and_inputs(rule, 13), places=(0, 3, 7, 8, 12))


@pytest.mark.parametrize("rule", EVERY)
@pytest.mark.parametrize("length", [20, 64])
def test_sizes_are_those_of_its_tensors(rule, length):
    """State: a matrix for each level at the last token, its own among them, and two taps of q, k and v."""
    keys = {
        "mixer": {"name": "log_linear", "rule": rule, "out_gate": True},
        "dim": D,
        "heads": H,
        "layers": 1,
        "conv": 3,
    }
    run = parse_run({"task": {"vocab": 32, "length": length, "pairs": [2]}, "model": keys})
    assert parameters(run) == sum(p[0].numel() for p in LM(run, 1).parameters())
    layer, inputs = layer_and_inputs(rule, length)
    _, by_level = held_by_definition(layer, *inputs)
    matrix = layer.memory.initial(layer.memory.tokens(inputs[0], *(layer._fold(z) for z in inputs[2:])))
    size = H * matrix.weights[0][0].numel()
    assert state_floats(run) == (2 * 3 * D + size, (len(by_level) - 1) * size)


def test_config_names_the_rules_that_exist():
    assert set(EVERY) == set(RULES)

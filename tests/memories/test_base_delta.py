"""The delta rules and RWKV-7 as memories: each from its parameters by the printed formulas, a token loop for each head.

Keys are of any length here, as without `qk_norm`.
"""

import math

import pytest
import torch
from torch.nn import functional as F

from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.replicas.parameters import initialise
from tests.tolerances import FP64

DIM, HEADS, K, LENGTH = 8, 2, 4, 37
FORGETTING = {"gated_delta": 0.3, "rwkv7": 0.45}


def layer_and_inputs(memory, dtype=torch.float64):
    """One replica and sequence; parameters far from their starts."""
    layer = CachingLayer(1, DIM, HEADS, LENGTH, MemoryMixer(memory=memory, aggregate="none"))
    initialise(layer, [0])
    generator = torch.Generator().manual_seed(1)
    for value in layer.parameters():
        value.data += 0.3 * torch.randn(value.shape, generator=generator)
    inputs = [scale * torch.randn(1, 1, LENGTH, DIM, generator=generator, dtype=dtype) for scale in (1, 1, 0.6, 1)]
    return layer.to(dtype), inputs


def by_heads(layer, inputs, moves_and_writes):
    """S_t = S_{t-1} move_t + write_t, y_t = S_t q_t, [T, D]."""
    x, q, k, v = (z[0, 0] for z in inputs)
    own = {name: value[0] for name, value in layer.memory.named_parameters()}
    heads = []
    for h in range(HEADS):
        part = slice(h * K, (h + 1) * K)
        state, outputs = torch.zeros(K, K, dtype=x.dtype), []
        for t in range(LENGTH):
            move, write = moves_and_writes(own, h, part, x[t], k[t, part], v[t, part])
            state = state @ move + write
            outputs.append(state @ q[t, part])
        heads.append(torch.stack(outputs))
    return torch.cat(heads, -1)


def delta(own, h, part, x, k, v):
    """arXiv 2406.06484."""
    beta = torch.sigmoid(x @ own["project"][:, h] + own["bias"][h])
    return torch.eye(K) - beta * torch.outer(k, k), beta * torch.outer(v, k)


def gated_delta(own, h, part, x, k, v):
    """arXiv 2412.06464, eq. 10, its decay that of Mamba-2."""
    logit, step = (x @ own["project"][:, 2 * h + i] + own["bias"][h, i] for i in (0, 1))
    alpha = torch.exp(-own["A_log"][h].exp() * F.softplus(step))
    beta = torch.sigmoid(logit)
    return alpha * (torch.eye(K) - beta * torch.outer(k, k)), beta * torch.outer(v, k)


def rwkv7(own, h, part, x, k, v):
    """arXiv 2503.14456, section 4.1; d, a, kappa and the replacement key."""
    d = own["decay_bias"][h] + torch.tanh(x @ own["decay_down"]) @ own["decay_up"][:, part]
    w = torch.exp(-math.exp(-0.5) * torch.sigmoid(d))
    a = torch.sigmoid(own["step_bias"][h] + x @ own["step_down"] @ own["step_up"][:, part])
    kappa = k * own["xi"][h]
    kappa = kappa / kappa.norm()
    written = k * (1 + (a - 1) * own["rho"][h])
    return torch.diag(w) - torch.outer(kappa, a * kappa), torch.outer(v, written)


@pytest.mark.parametrize("rule", [delta, gated_delta, rwkv7])
def test_equals_the_printed_rule(rule):
    layer, inputs = layer_and_inputs(rule.__name__)
    torch.testing.assert_close(layer(*inputs)[0, 0], by_heads(layer, inputs, rule), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("memory", FORGETTING)
def test_no_channel_forgets_a_short_sequence_at_the_start(memory, heads):
    """What is left after 64 tokens as the memory starts, where the layer's input is zero, is at least this share."""
    layer = CachingLayer(1, 16, heads, 64, MemoryMixer(memory=memory, aggregate="none"))
    initialise(layer, [0])
    x, folded = torch.zeros(1, 1, 64, 16), torch.ones(heads, 64, 16 // heads)
    rates = layer.memory.tokens(x, folded, folded).rates
    logs = rates[1] if memory == "gated_delta" else rates[0]
    left = logs.sum(1).exp()
    assert left.min() > FORGETTING[memory]
    assert left.max() < 1

"""Mamba-2 against the paper's recurrence, and where its rates start."""

import math

import pytest
import torch
from torch.nn import functional as F

from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.replicas.parameters import initialise
from tests.caching.test_memories import DIM, layer_and_inputs
from tests.tolerances import FP64


def test_the_layer_is_the_recurrence_of_the_paper():
    """h_t = exp(Delta_t A) h_{t-1} + Delta_t B_t x_t^T and y_t = C_t^T h_t + D x_t, with C, B, x for q, k, v."""
    layer, inputs = layer_and_inputs(length=13, heads=2, replicas=2, memory="mamba2", aggregate="none")
    for value, scale in ((layer.memory.A_log, 0.5), (layer.memory.D, 1.0)):
        value.data.copy_(scale * torch.randn(value.shape, generator=torch.Generator().manual_seed(0)))
    found = layer(*inputs).unflatten(-1, (2, -1))
    x, C, B, X = (z.detach() for z in inputs)
    C, B, X = (z.unflatten(-1, (2, -1)) for z in (C, B, X))
    for r in range(2):
        for head in range(2):
            A = -layer.memory.A_log[r, head, 0].exp()
            h = torch.zeros(DIM // 2, DIM // 2, dtype=torch.float64)
            for t in range(13):
                logit = x[r, 0, t] @ layer.memory.project[r, :, head] + layer.memory.bias[r, head, 0]
                delta = torch.log(1 + torch.exp(logit))
                h = torch.exp(delta * A) * h + delta * torch.outer(B[r, 0, t, head], X[r, 0, t, head])
                y = C[r, 0, t, head] @ h + layer.memory.D[r, head, 0] * X[r, 0, t, head]
                torch.testing.assert_close(found[r, 0, t, head], y, atol=FP64, rtol=FP64)


@pytest.mark.parametrize("aggregate", ["residual", "soup", "ssc"])
def test_what_goes_past_the_memory_is_added_once(aggregate):
    """However many memories a token reads, and however they are weighed: D v_t."""
    layer, inputs = layer_and_inputs(length=13, heads=2, memory="mamba2", aggregate=aggregate, segment=3)
    before = layer(*inputs)
    layer.memory.D.data += 2.0
    torch.testing.assert_close(layer(*inputs) - before, 2.0 * inputs[3], atol=FP64, rtol=0)


@pytest.mark.parametrize(("heads", "steps"), [(1, [0.01]), (2, [0.1**2.5, 0.1**1.5]), (4, None)])
def test_steps_start_spread_between_a_thousandth_and_a_tenth(heads, steps):
    layer = CachingLayer(1, DIM, heads, 13, MemoryMixer(memory="mamba2"))
    initialise(layer, [0])
    found = F.softplus(layer.memory.bias.detach())[0, :, 0]
    if steps is not None:
        torch.testing.assert_close(found, torch.tensor(steps))
    assert found.min() >= 0.001
    assert found.max() <= 0.1
    if heads > 1:
        gaps = found.log().diff()
        torch.testing.assert_close(gaps, torch.full_like(gaps, math.log(100) / heads))

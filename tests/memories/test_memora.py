"""Memora in the caching layer: over a long sequence, at the largest steps, with large values."""

import pytest
import torch

from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.layers import initialise


@pytest.mark.parametrize("max_lr", [1.0, 1000.0])
@pytest.mark.parametrize("init", ["restart", "checkpoint"])
def test_a_long_sequence_overflows_nothing(init, max_lr):
    """As it starts, in fp32, with unit keys as in a model. A row of W sums up to at most K, however long the steps."""
    mixer = MemoryMixer(memory="memora", init=init, segment=512, aggregate="grm", max_lr=max_lr)
    layer = CachingLayer(1, 8, 1, 4096, mixer)
    initialise(layer, [0])
    generator = torch.Generator().manual_seed(0)
    x, q, k, v = (torch.randn(1, 1, 4096, 8, generator=generator) for _ in range(4))
    q, k = (torch.nn.functional.normalize(z, dim=-1) for z in (q, k))
    v.requires_grad_()
    y = layer(x, q, k, v)
    grads = torch.autograd.grad(y.square().mean(), [v, *layer.parameters()])
    assert y.isfinite().all()
    assert y.abs().max() <= 8
    assert all(grad.isfinite().all() for grad in grads)

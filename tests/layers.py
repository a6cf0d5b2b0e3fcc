"""What holds of every layer: it is its definition, sees no future, and a long sequence overflows nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.replicas.parameters import initialise
from tests.tolerances import FP64


def assert_causal(layer: Callable[..., Tensor], inputs: Sequence[Tensor], places: Iterable[int]) -> None:
    """Changing token t of the inputs [R, B, T, D] changes the output at t and nothing before."""
    before = layer(*inputs)
    for t in places:
        changed = [x.detach().clone() for x in inputs]
        for x in changed:
            x[:, :, t] += 1.0
        after = layer(*changed)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=FP64, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])


def assert_same_with_gradients(fast: Tensor, slow: Tensor, sources: Sequence[Tensor], rtol: float = FP64) -> None:
    """A fast form and its definition agree in fp64, in value and in the gradients of all that they are made of."""
    torch.testing.assert_close(fast, slow, atol=FP64, rtol=rtol)
    upstream = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    grads = [torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True) for y in (fast, slow)]
    for mine, definition in zip(*grads, strict=True):
        torch.testing.assert_close(mine, definition, atol=FP64, rtol=rtol)


def largest_over_a_long_sequence(mixer: MemoryMixer) -> float:
    """The largest output over 4096 tokens of a layer as it starts, in fp32, with unit keys as in a model.

    Outputs and gradients are asserted to be finite.
    """
    layer = CachingLayer(1, 8, 1, 4096, mixer)
    initialise(layer, [0])
    generator = torch.Generator().manual_seed(0)
    x, q, k, v = (torch.randn(1, 1, 4096, 8, generator=generator) for _ in range(4))
    q, k = (F.normalize(z, dim=-1) for z in (q, k))
    v.requires_grad_()
    y = layer(x, q, k, v)
    grads = torch.autograd.grad(y.square().mean(), [v, *layer.parameters()])
    assert y.isfinite().all()
    assert all(grad.isfinite().all() for grad in grads)
    return y.abs().max().item()


def comparable(case: dict[str, Any]) -> dict[str, Any]:
    """A query is compared with keys alone; the config refuses another pool then."""
    taught = case.get("gate", "context") == "context" or case.get("route") != "hard"
    return case | {"pool_of": "keys"} if case.get("connector") == "shared" or not taught else case

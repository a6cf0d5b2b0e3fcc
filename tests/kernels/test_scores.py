"""Segment scores against their token loop, with gradients, in fp64."""

import pytest
import torch

from mclab.kernels.scores import scores, segment_scores, segment_scores_reference
from tests.tolerances import FP64


def test_by_hand():
    """Keys 1, 2 | 3, 4 and u = 1, 1, 1, 10."""
    k = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1)
    u = torch.tensor([1.0, 1.0, 1.0, 10.0]).view(1, 4, 1)
    running, whole = segment_scores(u, k, 2)
    assert running.tolist() == [[1.0, 3.0, 3.0, 70.0]]
    assert whole.tolist() == [[[3.0, 7.0], [3.0, 7.0], [3.0, 7.0], [30.0, 70.0]]]


@pytest.mark.parametrize(("T", "segment"), [(1, 1), (16, 16), (24, 8)])
def test_in_one_go_equals_the_parts(T, segment):
    """The running product in t's own column, times factors, with gradients."""
    generator = torch.Generator().manual_seed(T)
    u, k = (torch.randn(2, T, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    column = torch.arange(T)[:, None] // segment
    own, factors = column == torch.arange(T // segment), torch.rand(T, T // segment, generator=generator).double()
    running, whole = segment_scores(u, k, segment)
    parts, made = torch.where(own, running[..., None], whole) * factors, scores(u, k, segment, own, column, factors)
    upstream = torch.randn(made.shape, generator=generator, dtype=torch.float64)
    grads = [torch.autograd.grad(each, (u, k), upstream) for each in (made, parts)]
    for mine, other in [(made, parts), *zip(*grads, strict=True)]:
        torch.testing.assert_close(mine, other, atol=FP64, rtol=0)


@pytest.mark.parametrize(("T", "segment"), [(1, 1), (16, 16), (63, 9), (64, 8), (65, 13), (127, 1)])
def test_equals_reference_with_gradients(T, segment):
    generator = torch.Generator().manual_seed(T)
    u, k = (torch.randn(2, T, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    fast, slow = segment_scores(u, k, segment), segment_scores_reference(u, k, segment)
    upstream = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in slow]
    pairs = [*zip(fast, slow, strict=True)]
    grads = [torch.autograd.grad(each, (u, k), upstream) for each in (fast, slow)]
    for mine, definition in [*pairs, *zip(*grads, strict=True)]:
        torch.testing.assert_close(mine, definition, atol=FP64, rtol=0)

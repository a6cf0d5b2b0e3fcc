"""The linear memory's chunkwise forms against its recurrence: outputs, states, gradients, in fp64."""

import pytest
import torch

from mclab.kernels.linear import chunkwise, recurrent
from tests.tolerances import FP64


def draw(T, segment, K=3, V=4, G=2):
    generator = torch.Generator().manual_seed(T * 100 + segment)
    shapes = [(G, T, K), (G, T, K), (G, T, V), (G, T, T // segment)]
    return [torch.randn(*s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]


def assert_same_with_gradients(fast, slow, inputs):
    torch.testing.assert_close(fast, slow, atol=FP64, rtol=0)
    upstream = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mine = torch.autograd.grad(fast, inputs, upstream, materialize_grads=True, allow_unused=True)
    definition = torch.autograd.grad(slow, inputs, upstream, materialize_grads=True, allow_unused=True)
    for a, b in zip(mine, definition, strict=True):
        torch.testing.assert_close(a, b, atol=FP64, rtol=0)


def test_three_tokens_by_hand():
    """Segments {0, 1} and {2}; K = V = 1; keys 1, 2, 3; values 5, 7, 11; all queries 1."""
    q = torch.ones(1, 3, 1, dtype=torch.float64)
    k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).view(1, 3, 1)
    v = torch.tensor([5.0, 7.0, 11.0], dtype=torch.float64).view(1, 3, 1)
    weights = torch.tensor([[2.0, 0], [2.0, 0], [0.5, 10.0]], dtype=torch.float64)[None]
    # t=0: 2 * 5;  t=1: 2 * (5 + 14);  t=2: 0.5 * 19 + 10 * 33
    assert recurrent.weighted_read(q, k, v, weights, 2).flatten().tolist() == [10.0, 38.0, 339.5]
    padded = [torch.cat([x, torch.zeros_like(x[:, :1])], dim=1) for x in (q, k, v, weights)]
    for form in (chunkwise.quadratic_read, chunkwise.cached_read):
        assert form(*padded, 2).flatten()[:3].tolist() == [10.0, 38.0, 339.5]


@pytest.mark.parametrize("form", [chunkwise.quadratic_read, chunkwise.cached_read, chunkwise.weighted_read])
@pytest.mark.parametrize(("T", "segment"), [(1, 1), (15, 5), (16, 4), (16, 16), (63, 9), (64, 8), (65, 13), (127, 1)])
def test_weighted_read_equals_recurrence(form, T, segment):
    inputs = draw(T, segment)
    assert_same_with_gradients(form(*inputs, segment), recurrent.weighted_read(*inputs, segment), inputs)


@pytest.mark.parametrize("T", [1, 15, 16, 17, 63, 64, 65, 127, 200])
def test_plain_read_equals_recurrence_with_unit_weights(T):
    q, k, v, _ = draw(T, 1)
    ones = torch.ones(2, T, 1, dtype=torch.float64)
    slow = recurrent.weighted_read(q, k, v, ones, T)
    assert_same_with_gradients(chunkwise.plain_read(q, k, v), slow, [q, k, v])


def test_long_plain_read_takes_the_chunked_form(monkeypatch):
    """The choice is by operation count; the test would pass trivially if the quadratic form ran for every T."""
    used = []
    original = chunkwise.segment_states
    monkeypatch.setattr(chunkwise, "segment_states", lambda *a: used.append(1) or original(*a))
    q, k, v, _ = draw(200, 1)
    chunkwise.plain_read(q, k, v)
    assert used


@pytest.mark.parametrize(("T", "segment"), [(12, 3), (16, 16), (7, 1)])
def test_segment_states(T, segment):
    _, k, v, _ = draw(T, segment)
    assert_same_with_gradients(chunkwise.segment_states(k, v, segment), recurrent.segment_states(k, v, segment), [k, v])


@pytest.mark.parametrize(("T", "segment", "form"), [(64, 8, "quadratic_read"), (512, 64, "cached_read")])
def test_the_cheaper_form_is_chosen(monkeypatch, T, segment, form):
    """Both forms are exact; at T=64 the quadratic one costs less, at T=512 in segments of 64 it does not."""
    used = []
    for name in ("quadratic_read", "cached_read"):
        monkeypatch.setattr(chunkwise, name, lambda *a, name=name: used.append(name))
    q, k, v, weights = draw(T, segment, K=16, V=16, G=32)
    chunkwise.weighted_read(q, k, v, weights, segment)
    assert used == [form]

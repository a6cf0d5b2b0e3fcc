"""The short convolution: hand-worked values, the reference, gradients, causality."""

import pytest
import torch

from mclab.kernels.conv import causal_conv, causal_conv_reference
from tests.tolerances import FP64


def test_three_tokens_by_hand():
    x = torch.tensor([1.0, 10.0, 100.0]).view(1, 1, 3, 1)
    weight = torch.tensor([2.0, 3.0]).view(1, 2, 1)  # two taps: the last one meets the current token
    assert causal_conv(x, weight).flatten().tolist() == [3.0, 32.0, 320.0]


@pytest.mark.parametrize("T", [1, 2, 3, 4, 17])
@pytest.mark.parametrize("taps", [1, 2, 4])
def test_equals_reference_with_gradients(T, taps):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, T, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, taps, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(2, 3, T, 5, generator=generator, dtype=torch.float64)
    fast, slow = causal_conv(x, weight), causal_conv_reference(x, weight)
    torch.testing.assert_close(fast, slow, atol=FP64, rtol=0)
    for a, b in zip(
        torch.autograd.grad(fast, (x, weight), upstream), torch.autograd.grad(slow, (x, weight), upstream), strict=True
    ):
        torch.testing.assert_close(a, b, atol=FP64, rtol=0)

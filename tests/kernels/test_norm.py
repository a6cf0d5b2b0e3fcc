"""Normalisation against its composed form, with gradients, in fp64."""

import pytest
import torch

from mclab.kernels.norm import rms_normalise, rms_normalise_reference, unit
from tests.tolerances import FP64


@pytest.mark.parametrize("width", [1, 3, 16])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e3])
def test_equals_reference_with_gradients(width, size):
    """Also where EPS matters (size 1e-5) and where it does not."""
    generator = torch.Generator().manual_seed(width)
    x = (size * torch.randn(2, 5, width, generator=generator, dtype=torch.float64)).requires_grad_()
    upstream = torch.randn(2, 5, width, generator=generator, dtype=torch.float64)
    fast, slow = rms_normalise(x), rms_normalise_reference(x)
    torch.testing.assert_close(fast, slow, atol=FP64, rtol=0)
    (mine,), (definition,) = torch.autograd.grad(fast, x, upstream), torch.autograd.grad(slow, x, upstream)
    torch.testing.assert_close(mine, definition, atol=FP64 / size, rtol=1e-9)


def test_zero_stays_zero_with_a_finite_gradient():
    x = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(rms_normalise(x).sum(), x)
    assert rms_normalise(x).tolist() == [[0.0] * 4]
    assert torch.isfinite(grad).all()


def test_unit_vectors_by_hand():
    torch.testing.assert_close(unit(torch.tensor([3.0, 4.0])), torch.tensor([0.6, 0.8]), atol=1e-6, rtol=0)

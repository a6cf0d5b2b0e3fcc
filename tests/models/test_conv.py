"""The gated convolution against its equation, token by token."""

import torch

from mclab.config.model import ConvMixer, ModelConfig
from mclab.models.conv import GatedConv
from mclab.replicas.parameters import initialise
from tests.tolerances import FP64

R, B, T, D, KERNEL = 2, 3, 7, 4, 3


def mixer() -> GatedConv:
    """Biases start at zero: shaken, so that they take part."""
    made = GatedConv(R, ModelConfig(dim=D, mixer=ConvMixer(kernel=KERNEL)), ConvMixer(kernel=KERNEL), T, 1.0)
    initialise(made, [0, 1])
    generator = torch.Generator().manual_seed(0)
    for values in made.parameters():
        values.data += torch.randn(values.shape, generator=generator)
    return made.double()


def naive(made: GatedConv, u: torch.Tensor) -> torch.Tensor:
    """(W u_t + b1) * (sum_j h_j u_{t-j} + b2) + u_t for each replica, row and token by itself."""
    rows = []
    for r in range(R):
        for b in range(B):
            for t in range(T):
                past = [made.taps[r, KERNEL - 1 - j] * u[r, b, t - j] for j in range(min(KERNEL, t + 1))]
                filtered = torch.stack(past).sum(0) + made.taps_bias[r]
                gate = u[r, b, t] @ made.weight[r] + made.bias[r]
                rows.append(gate * filtered + u[r, b, t])
    return torch.stack(rows).view(R, B, T, D)


def test_equals_the_equation_with_gradients() -> None:
    made, generator = mixer(), torch.Generator().manual_seed(1)
    u = torch.randn(R, B, T, D, generator=generator, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(R, B, T, D, generator=generator, dtype=torch.float64)
    ours, theirs = made(u), naive(made, u)
    torch.testing.assert_close(ours, theirs, atol=FP64, rtol=0)
    wanted = [u, *made.parameters()]
    for a, b in zip(
        torch.autograd.grad(ours, wanted, upstream), torch.autograd.grad(theirs, wanted, upstream), strict=True
    ):
        torch.testing.assert_close(a, b, atol=FP64, rtol=0)


def test_a_token_sees_as_many_tokens_as_there_are_taps() -> None:
    """What a state of (taps - 1) * D floats must hold: the inputs before the token, as far as the filter reaches."""
    made = mixer()
    u = torch.randn(R, B, T, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(made(u)[:, :, 4].sum(), u)
    assert [bool(grad[:, :, t].any()) for t in range(T)] == [False, False, True, True, True, False, False]


def test_a_seed_starts_the_filter_and_not_the_biases() -> None:
    made = GatedConv(R, ModelConfig(dim=D, mixer=ConvMixer()), ConvMixer(), T, 1.0)
    initialise(made, [0, 1])
    assert not made.bias.any()
    assert not made.taps_bias.any()
    assert not torch.equal(made.taps[0], made.taps[1])
    assert [made.weight.decays, made.bias.decays, made.taps.decays, made.taps_bias.decays] == [
        True,
        False,
        False,
        False,
    ]

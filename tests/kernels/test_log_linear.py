"""Log-linear attention: levels, the chunk form against the token loop, and that against the sum over pairs."""

import pytest
import torch
from torch.nn import functional as F

from mclab.config.model import LogLinearMixer
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.log_linear import chunkwise, recurrent
from tests.tolerances import FP64

RULES = ("decayed", "delta")
X, K, V = 3, 4, 5


def inputs(length, rule, levels_known):
    """Rates far from 0 and 1, unit keys, weights of every level."""
    generator = torch.Generator().manual_seed(length)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    q, k, v = draw(X, length, K), F.normalize(draw(X, length, K), dim=-1), draw(X, length, V)
    log_alpha, eta = F.logsigmoid(draw(X, length) + 1), torch.sigmoid(draw(X, length))
    weights = F.softplus(draw(X, length, levels_known))
    return [z.requires_grad_() for z in (q, k, v, log_alpha, eta, weights)]


def slow(rule, q, k, v, log_alpha, eta, weights):
    alpha = log_alpha.exp()
    a, b = (alpha * eta).unsqueeze(-1) * k, k
    if rule == "decayed":
        a, b = 0 * a, 0 * b
    return recurrent.read(q, alpha, a, b, eta.unsqueeze(-1) * k, v, weights)


def fast(rule, chunk, q, k, v, log_alpha, eta, weights):
    length = q.shape[1]
    short = -length % chunk

    def cut(z):
        z = F.pad(z, (*(0, 0) * (z.dim() - 2), 0, short))
        return z.unflatten(1, (-1, chunk)).transpose(0, 1)

    q, k, v, weights = cut(q), cut(k), cut(v), cut(weights)
    parts = getattr(chunkwise, rule)(q, k, v, coefficients(Rates(cut(eta), cut(log_alpha))))
    return chunkwise.read(parts, v, weights).transpose(0, 1).flatten(1, 2)[:, :length]


@pytest.mark.parametrize("length", [1, 2, 3, 16, 37, 64])
def test_the_table_of_levels_is_the_papers_recursion(length):
    table = chunkwise.level_table(length, 63, torch.device("cpu"))
    assert all(table[t, s] == chunkwise.level(t, s) for t in range(length) for s in range(t + 1))
    assert table.max() + 1 == chunkwise.count_levels(length) == LogLinearMixer().levels(length)


@pytest.mark.parametrize("rule", RULES)
def test_the_token_loop_is_the_sum_over_pairs_of_tokens(rule):
    """lambda of the pair's level times what is left of s's write, v_s k_s^T moved on by every transition since."""
    q, k, v, log_alpha, eta, weights = inputs(13, rule, 5)
    y = slow(rule, q, k, v, log_alpha, eta, weights)
    for t in (0, 1, 7, 12):
        wanted = torch.zeros(X, V, dtype=torch.float64)
        for s in range(t + 1):
            write = eta[:, s, None, None] * v[:, s, :, None] * k[:, s, None]
            for r in range(s + 1, t + 1):
                held = k[:, r, :, None] * k[:, r, None]
                kept = torch.eye(K) - eta[:, r, None, None] * held if rule == "delta" else torch.eye(K)
                write = log_alpha[:, r, None, None].exp() * write @ kept.double()
            wanted = wanted + weights[:, t, chunkwise.level(t, s), None] * (write @ q[:, t, :, None]).squeeze(-1)
        torch.testing.assert_close(y[:, t], wanted, atol=FP64, rtol=0)


@pytest.mark.parametrize("chunk", [1, 4, 16])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 64, 65])
@pytest.mark.parametrize("rule", RULES)
def test_chunks_equal_the_token_loop_with_all_gradients(rule, length, chunk):
    given = inputs(length, rule, chunkwise.count_levels(length))
    mine, wanted = fast(rule, chunk, *given), slow(rule, *given)
    torch.testing.assert_close(mine, wanted, atol=FP64, rtol=FP64)
    upstream = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grads = (torch.autograd.grad(y, given, upstream) for y in (mine, wanted))
    for own, definition in zip(*grads, strict=True):
        torch.testing.assert_close(own, definition, atol=FP64, rtol=FP64)


@pytest.mark.parametrize("rule", RULES)
def test_levels_beyond_the_trained_ones_weigh_as_the_last(rule):
    given = inputs(64, rule, 4)
    torch.testing.assert_close(fast(rule, 8, *given), slow(rule, *given), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("rule", RULES)
def test_equal_weights_read_the_whole_past_as_one(rule):
    """With every lambda 1 the levels add up to the plain memory."""
    q, k, v, log_alpha, eta, weights = inputs(37, rule, 7)
    y = fast(rule, 8, q, k, v, log_alpha, eta, torch.ones_like(weights))
    once = slow(rule, q, k, v, log_alpha, eta, torch.ones_like(weights[..., :1]))
    torch.testing.assert_close(y, once, atol=FP64, rtol=FP64)
    assert (y - fast(rule, 8, q, k, v, log_alpha, eta, weights)).abs().max() > 0.1

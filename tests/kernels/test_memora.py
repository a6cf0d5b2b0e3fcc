"""Memora: its step against autograd on the printed rule, its chunk form against its steps, and its extremes."""

import math

import pytest
import torch
from torch.nn import functional as F

from mclab.kernels import dispatch
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.memora import chunkwise, recurrent
from tests.covering import label, pairwise
from tests.tolerances import FP64

AXES = {
    "C": [1, 4, 16, 40],
    "T": [1, 15, 16, 17, 64, 65],
    "size": [(2, 3), (3, 3), (3, 2)],
    "large": [False, True],
    "numbers": [1, 1 << 16],
}
X = 2


def made(T=17, size=(3, 3), large=False, dtype=torch.float64, **_):
    """q, k, v, log alpha and eta of T tokens; `large`: with logits beyond what may go unshifted into an exponential."""
    generator = torch.Generator().manual_seed(T)
    K, V = size

    def leaf(*shape, scale=1.0, shift=0.0):
        x = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale + shift
        return x.to(dtype).requires_grad_()

    q, k, v = leaf(X, T, K), leaf(X, T, K), leaf(X, T, V)
    log_alpha = F.logsigmoid(leaf(X, T, shift=3.0)).detach().requires_grad_()
    eta = leaf(X, T, scale=3.0, shift=20.0) if large else leaf(X, T, scale=0.003, shift=0.02)
    return q, k, v, log_alpha, eta


def token_by_token(q, k, v, log_alpha, eta, C):
    """Outputs [X, T, V] and the weights at every chunk's end."""
    logits = k.new_zeros(len(k), v.shape[-1], k.shape[-1])
    weights, outputs, ends = logits, [], []
    for t in range(k.shape[1]):
        if t % C == 0:
            anchor = weights
        logits, weights = recurrent.step(logits, anchor, (k[:, t], v[:, t]), (eta[:, t], log_alpha[:, t].exp()))
        outputs.append(recurrent.read(weights, q[:, t]))
        if t % C == C - 1 or t == k.shape[1] - 1:
            ends.append(weights)
    return torch.stack(outputs, 1), torch.stack(ends, 1)


def in_chunks(q, k, v, log_alpha, eta, C):
    T = k.shape[1]
    chunks = -(-T // C)

    def cut(x):
        return F.pad(x, (*(0, 0) * (x.dim() - 2), 0, -T % C)).unflatten(1, (-1, C)).transpose(0, 1).contiguous()

    ends = [C - 1] * (chunks - 1) + [(T - 1) % C]
    made = coefficients(Rates(cut(eta), cut(log_alpha)))
    source = chunkwise.Retention(cut(k), cut(v), made, ends, list(range(chunks)))
    y, (kept,) = source.read(cut(q))
    return y.transpose(0, 1).flatten(1, 2)[:, :T], kept


def test_three_logits_by_hand():
    """sinh and cosh of ln 2 are 3/4 and 5/4: W = 2 (3/4, 0) / (5/4 + 1), and K (1, 0, 0) of a logit without bound."""
    weights = recurrent.formed(torch.tensor([[[math.log(2), 0.0], [-math.log(2), math.log(2)]]], dtype=torch.float64))
    expected = torch.tensor([[[2 / 3, 0.0], [-0.6, 0.6]]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, atol=1e-15, rtol=0)
    far = recurrent.formed(torch.tensor([[[2000.0, -10.0, 0.0]]]))
    torch.testing.assert_close(far, torch.tensor([[[3.0, 0.0, 0.0]]]))


@pytest.mark.parametrize("normalised", [False, True])
def test_a_step_is_the_printed_rule(normalised):
    """The gradient by autograd on W, the softmax over all 2 K inputs; with logits, or with the log of probabilities as
    the paper has it: they differ by a constant of each row, which the softmax does not see."""
    tokens = q, k, v, log_alpha, eta = made(T=12, size=(3, 2))
    K, V = 3, 2
    logits = torch.zeros(X, V, 2 * K, dtype=torch.float64)
    for t in range(12):
        probability = logits.softmax(-1)
        weights = (K * (probability[..., :K] - probability[..., K:])).detach().requires_grad_()
        loss = ((weights @ k[:, t, :, None]).squeeze(-1) - v[:, t]).square().sum()
        (gradient,) = torch.autograd.grad(loss, weights)
        before = probability.log() if normalised else logits
        both = torch.cat((gradient, -gradient), -1)
        logits = log_alpha[:, t, None, None].exp() * before - eta[:, t, None, None] * both
        probability = logits.softmax(-1)
        y = (K * (probability[..., :K] - probability[..., K:]) @ q[:, t, :, None]).squeeze(-1)
        torch.testing.assert_close(token_by_token(*tokens, 1)[0][:, t], y, atol=FP64, rtol=FP64)


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_chunks_equal_the_steps(case, monkeypatch):
    """Outputs, weights at the chunks' ends, all gradients."""
    monkeypatch.setattr(dispatch, "_CPU", dispatch._CPU._replace(numbers=case["numbers"]))
    tokens, C = made(**case), case["C"]
    fast, slow = in_chunks(*tokens, C), token_by_token(*tokens, C)
    upstream = [torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype) for y in slow]
    grads = [torch.autograd.grad(made, tokens, upstream, allow_unused=True) for made in (fast, slow)]
    for mine, definition in zip((*fast, *grads[0]), (*slow, *grads[1]), strict=True):
        torch.testing.assert_close(mine, definition, atol=FP64, rtol=FP64)


def test_large_logits_need_the_shift():
    """That the cases called large are: without the shift fp32's exponentials are infinite."""
    tokens = made(T=65, large=True, dtype=torch.float32)
    y, kept = in_chunks(*tokens, 16)
    grads = torch.autograd.grad(y.sum() + kept.sum(), tokens)
    assert all(x.isfinite().all() for x in (y, kept, *grads))
    assert kept.abs().max() <= 3.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunkwise, "SAFE", math.inf)
        assert not in_chunks(*tokens, 16)[0].isfinite().all()


def test_what_is_no_number_stays_none():
    """A diverged run shall be seen to be one."""
    q, k, v, log_alpha, eta = (x.detach() for x in made(T=17))
    v[0, 6] = math.nan
    y, kept = in_chunks(q, k, v, log_alpha, eta, 4)
    assert y[0, :4].isfinite().all()
    assert y[0, 6:].isnan().all()
    assert kept[0, 1:].isnan().all()
    assert y[1].isfinite().all()

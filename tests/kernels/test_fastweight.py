"""The chunk form of fast-weight writing against its definition, token by token, outputs, states and gradients."""

from itertools import pairwise as adjacent

import pytest
import torch
from torch.nn import functional as F

from mclab.kernels.fastweight import chunkwise, recurrent
from mclab.kernels.fastweight.net import EPS, Net
from mclab.kernels.fastweight.rates import Rates
from tests.covering import label, pairwise
from tests.tolerances import FP64

AXES = {
    "depth": [1, 2, 3, 4],
    "objective": ["l2", "dot"],
    "norm": ["residual", "rms", "soft", "none"],
    "decay": [True, False],
    "momentum": [True, False],
    "from_zero": [False, True],
    "to_start": [True, False],
    "C": [1, 4, 16, 40],
    "T": [1, 15, 16, 17, 64, 65],
    "K": [2, 3],
    "shared": [False, True],
}
X = 2


def made(depth=2, objective="l2", norm="rms", decay=True, momentum=True, from_zero=False, T=17, K=3, shared=False, **_):
    """The gain, W^0 of every layer (one, or one for each sequence), and q, k, v and rates of T tokens."""
    generator = torch.Generator().manual_seed(T)

    def leaf(*shape, scale=1.0, shift=0.0):
        x = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale + shift
        return x.requires_grad_()

    widths = [K, *[4 * K] * (depth - 1), K]
    start = [leaf(1 if shared else X, o, i, scale=i**-0.5) for i, o in adjacent(widths)]
    if from_zero:
        start = [torch.zeros_like(w) for w in start]
    gain = leaf(X, 1, K) if norm in ("rms", "soft") else None
    # Steps small enough that 65 of them do not amplify rounding (0.1 does, a hundred times every ten tokens); decays
    # that make products over a chunk neither near 0 nor near 1.
    eta = leaf(X, T, scale=0.003, shift=0.01)
    logs = [F.logsigmoid(leaf(X, T, scale=1.0, shift=1.0)) if used else None for used in (decay, momentum)]
    tokens = [leaf(X, T, K) for _ in range(3)]
    return (
        Net(gain, objective, norm in ("rms", "residual"), 0.03 if norm == "soft" else EPS),
        start,
        tokens,
        Rates(eta, *logs),
    )


def leaves(net, start, tokens, rates):
    return [*([] if net.gain is None else [net.gain]), *start, *tokens, *(rate for rate in rates if rate is not None)]


def cut(x, C):
    """[X, T, ...] to [M, X, C, ...]."""
    short = -x.shape[1] % C
    x = F.pad(x, (*(0, 0) * (x.dim() - 2), 0, short))
    return x.unflatten(1, (-1, C)).transpose(0, 1).contiguous()


def written(net, start, tokens, rates, C, from_zero=False, to_start=True):
    _, k, v = tokens
    T = k.shape[1]
    chunks = -(-T // C)
    ends = [C - 1] * (chunks - 1) + [(T - 1) % C]
    each = Rates(*(None if rate is None else cut(rate, C) for rate in rates))
    keep = list(range(chunks))
    return chunkwise.Descent(net, cut(k, C), cut(v, C), start, each, ends, keep, from_zero, to_start)


def fused(source, net, q, C):
    h, kept = source.read(cut(q, C))
    return [net.finish(q, uncut(h, q)), *kept]


def by_layers(source, net, q, C):
    layers = source.layers()
    y = net.read([lambda x, layer=layer: uncut(layer.online(cut(x, C)), q) for layer in layers], q)
    return [y, *(layer.kept for layer in layers)]


def uncut(y, like):
    return y.transpose(0, 1).flatten(1, 2)[:, : like.shape[1]]


def definition(net, start, tokens, rates, C, from_zero=False, to_start=True):
    """Outputs [X, T, V], and each layer's weights after every chunk."""
    q, k, v = tokens
    eta = rates.eta
    alpha = torch.ones_like(eta) if rates.log_alpha is None else rates.log_alpha.exp()
    beta = torch.zeros_like(eta) if rates.log_beta is None else rates.log_beta.exp()
    start = [w.expand(X, -1, -1) for w in start]
    weights, momentum, anchor = start, recurrent.zeros(start), start
    rest = start if to_start else recurrent.zeros(start)
    outputs, kept = [], []
    for t in range(q.shape[1]):
        if t % C == 0:
            anchor = weights
        own = (eta[:, t], alpha[:, t], beta[:, t])
        weights, momentum = recurrent.step(net, anchor, weights, momentum, rest, (k[:, t], v[:, t]), own)
        outputs.append(recurrent.read(net, weights, q[:, t]))
        if t % C == C - 1 or t == q.shape[1] - 1:
            kept.append(weights)
    return [torch.stack(outputs, 1), *(torch.stack(layer, 1) for layer in zip(*kept, strict=True))]


def assert_same(mine, theirs, sources):
    """Values, and the gradients of a random combination of all of them."""
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=FP64, rtol=FP64)
    generator = torch.Generator().manual_seed(1)
    upstream = [torch.randn(a.shape, generator=generator, dtype=a.dtype) for a in mine]
    grads = [
        torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True, retain_graph=True)
        for y in (mine, theirs)
    ]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=FP64, rtol=FP64)


def checked(case):
    """A memory at zero is of depth 1; one of depth 1 decays toward zero, which is where it starts."""
    return case | {"from_zero": case["from_zero"] and case["depth"] == 1}


@pytest.mark.parametrize("read", [fused, by_layers])
@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_equals_definition(case, read):
    case = checked(dict(case))
    net, start, tokens, rates = made(**case)
    how = (case["C"], case["from_zero"], case["to_start"])
    source = written(net, start, tokens, rates, *how)
    sources = leaves(net, [] if case["from_zero"] else start, tokens, rates)
    assert_same(read(source, net, tokens[0], case["C"]), definition(net, start, tokens, rates, *how), sources)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 127])
@pytest.mark.parametrize("chunk", [16, 64])
def test_lengths(length, chunk):
    net, start, tokens, rates = made(T=length, K=2)
    mine = fused(written(net, start, tokens, rates, chunk), net, tokens[0], chunk)
    assert_same(mine, definition(net, start, tokens, rates, chunk), leaves(net, start, tokens, rates))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("objective", ["l2", "dot"])
@pytest.mark.parametrize("norm", ["rms", "soft", "none", "residual"])
def test_chunk_of_one_descends_the_loss_of_the_memory(depth, objective, norm):
    """The gradient is autograd's, of the loss of M(k) as it is read, with respect to the memory's matrices."""
    net, start, tokens, rates = made(depth, objective, norm, T=5)
    q, k, v = tokens
    weights, momentum, outputs = start, [0.0] * depth, []
    for t in range(5):
        seen = recurrent.read(net, weights, k[:, t])
        loss = -(seen * v[:, t]).sum() if objective == "dot" else (seen - v[:, t]).square().sum()
        slopes = torch.autograd.grad(loss, weights, create_graph=True)
        eta, alpha, beta = (each[:, t, None, None] for each in (rates.eta, rates[1].exp(), rates[2].exp()))
        momentum = [beta * s - eta * slope for s, slope in zip(momentum, slopes, strict=True)]
        moved = zip(start, weights, momentum, strict=True)
        weights = [first + alpha * (w - first) + s for first, w, s in moved]
        outputs.append(recurrent.read(net, weights, q[:, t]))
    mine = fused(written(net, start, tokens, rates, 1), net, q, 1)[:1]
    assert_same(mine, [torch.stack(outputs, 1)], leaves(net, start, tokens, rates))


def test_a_memory_with_a_residual_and_no_norm_is_as_printed():
    """M(x) = x + W_2 gelu(W_1 x), the appendix's form; without `residual` the sum with x is left out."""
    _, (first, second), (x, *_), _ = made(T=5)
    branch = F.gelu(x @ first.mT) @ second.mT
    layers = [lambda h: h @ first.mT, lambda h: h @ second.mT]
    torch.testing.assert_close(Net(None, "l2", True).read(layers, x), x + branch, atol=FP64, rtol=0)
    torch.testing.assert_close(Net(None, "l2").read(layers, x), branch, atol=FP64, rtol=0)


def test_one_step_by_hand():
    """Depth 1, K = V = 1, W^0 = 1: k = 2, v = 5, eta = 0.1 gives u = 2 (5 - 2) = 6 and W = 1 + 0.1 * 6 * 2 = 2.2.

    With beta = 0.5 the second token (k = 1, v = 2.2: no error) adds 0.5 * 1.2, so W = 2.8; both queries are 10.
    """
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    k, v = torch.tensor([[[2.0], [1.0]]], dtype=torch.float64), torch.tensor([[[5.0], [2.2]]], dtype=torch.float64)
    eta, beta = (torch.full((1, 2), rate, dtype=torch.float64) for rate in (0.1, 0.5))
    rates = Rates(eta, None, beta.log())
    net, q = Net(None, "l2"), torch.full((1, 2, 1), 10.0, dtype=torch.float64)
    y, kept = fused(written(net, [one], [q, k, v], rates, 1), net, q, 1)
    torch.testing.assert_close(y.flatten(), torch.tensor([22.0, 28.0], dtype=torch.float64), atol=FP64, rtol=0)
    torch.testing.assert_close(kept.flatten(), torch.tensor([2.2, 2.8], dtype=torch.float64), atol=FP64, rtol=0)


def test_strong_forgetting_stays_finite():
    """alpha of e^-50 a token: the products above the diagonal overflow, and must reach neither values nor gradients."""
    net, start, tokens, rates = made(T=64, momentum=True)
    rates = rates._replace(log_alpha=(rates.log_alpha - 50.0).detach().requires_grad_())
    mine = fused(written(net, start, tokens, rates, 64), net, tokens[0], 64)
    theirs = definition(net, start, tokens, rates, 64)
    assert_same(mine, theirs, leaves(net, start, tokens, rates))


def test_a_token_does_not_see_later_ones():
    net, start, tokens, rates = made(T=64)
    y = fused(written(net, start, tokens, rates, 16), net, tokens[0], 16)[0]
    (grad,) = torch.autograd.grad(y[:, 20].sum(), tokens[1])
    assert grad[:, :21].abs().amin(-1).gt(0).all()
    assert grad[:, 21:].eq(0).all()

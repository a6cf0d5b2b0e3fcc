"""The chunk forms of the delta rules against a token loop: outputs, kept states and all gradients, and in fp32."""

import pytest
import torch
from torch.nn import functional as F

from mclab.kernels import rwkv7
from mclab.kernels.delta import chunkwise, recurrent, wy
from mclab.kernels.dispatch import costs
from mclab.kernels.fastweight.rates import Rates, coefficients
from tests.covering import label, pairwise
from tests.tolerances import FP64

AXES = {
    "C": [1, 4, 16],
    "T": [1, 15, 16, 17, 64, 65],
    "start": [False, True],
    "keep": ["none", "last", "all"],
    "unit": [True, False],
    "sizes": [(3, 3), (4, 2), (2, 4)],
}
X = 2
#: fp32 against fp64, relative to the largest entry, over 1024 tokens of unit keys and steps near 1: a few roundings of
#: 6e-8 a token, which erasing does not let grow (measured: 5e-7 at most, gradients included).
FP32 = 1e-5


def leaf(*shape, scale=1.0, shift=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed + 100 * sum(shape))
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale + shift).requires_grad_()


def vectors(T, K, V, unit, count):
    """q, v and `count` keys, of length one or of any length about it: 65 longer ones make a memory explode."""
    q, v = leaf(X, T, K, seed=1), leaf(X, T, V, seed=2)
    raw = [leaf(X, T, K, seed=3 + i) for i in range(count)]
    return q, v, raw, [F.normalize(k, dim=-1) if unit else 0.5 * k for k in raw]


def cut(x, C):
    """[X, T, ...] to [M, X, C, ...], zeros behind the last token."""
    x = F.pad(x, (*(0, 0) * (x.dim() - 2), 0, -x.shape[1] % C))
    return x.unflatten(1, (-1, C)).transpose(0, 1).contiguous()


def joined(y, T):
    return y.transpose(0, 1).flatten(1, 2)[:, :T]


def wanted(keep, T, C):
    """Chunks to keep, and the last token of each."""
    chunks = -(-T // C)
    chosen = {"none": (), "last": (chunks - 1,), "all": tuple(range(chunks))}[keep]
    return chosen, [min((m + 1) * C, T) - 1 for m in chosen]


def assert_same(mine, theirs, sources):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=FP64, rtol=FP64)
    upstream = [leaf(*a.shape, seed=9).detach() for a in mine]
    grads = [
        torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True, retain_graph=True)
        for y in (mine, theirs)
    ]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=FP64, rtol=FP64)


def in_chunks(source, q, C):
    y, kept = source.read(cut(q, C))
    return [joined(y, q.shape[1]), *kept]


def delta_loop(q, k, v, beta, log_alpha, start):
    """S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T, y_t = S_t q_t, as printed (arXiv 2412.06464,
    eq. 10; with alpha = 1 arXiv 2406.06484)."""
    eye, state, outputs, states = torch.eye(k.shape[-1], dtype=k.dtype), start, [], []
    for t in range(k.shape[1]):
        kt, vt, rate = k[:, t, :, None], v[:, t, :, None], beta[:, t, None, None]
        decay = 1.0 if log_alpha is None else log_alpha[:, t, None, None].exp()
        state = decay * (state @ (eye - rate * kt @ kt.mT)) + rate * vt @ kt.mT
        outputs.append((state @ q[:, t, :, None])[..., 0])
        states.append(state)
    return torch.stack(outputs, 1), torch.stack(states, 1)


def rwkv7_loop(q, logs, a, b, k, v, start):
    """S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T, y_t = S_t q_t (arXiv 2503.14456: a is kappa, b a * kappa)."""
    state, outputs, states = start, [], []
    for t in range(k.shape[1]):
        move = torch.diag_embed(logs[:, t].exp()) - a[:, t, :, None] * b[:, t, None, :]
        state = state @ move + v[:, t, :, None] * k[:, t, None, :]
        outputs.append((state @ q[:, t, :, None])[..., 0])
        states.append(state)
    return torch.stack(outputs, 1), torch.stack(states, 1)


def started(used, K, V):
    """What the chunk form, what the loop starts from, and what of it has a gradient."""
    start = leaf(X, V, K, seed=8)
    return (start, start, [start]) if used else (None, torch.zeros_like(start), [])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_delta_rule_equals_the_token_loop(case, gated):
    """With `start` the state carried in, with `keep` states off chunk ends; beta up to 1, and keys that aren't unit."""
    (K, V), T, C = case["sizes"], case["T"], case["C"]
    q, v, raw, (k,) = vectors(T, K, V, case["unit"], 1)
    logits, decay = leaf(X, T, seed=6), leaf(X, T, shift=1.0, seed=7)
    beta, log_alpha = torch.sigmoid(3 * logits), F.logsigmoid(decay) if gated else None
    start, state, given = started(case["start"], K, V)
    keep, last = wanted(case["keep"], T, C)
    known = coefficients(Rates(cut(beta, C), None if log_alpha is None else cut(log_alpha, C)))
    source = chunkwise.Scalar(cut(k, C), cut(v, C), known, keep, start)
    y, states = delta_loop(q, k, v, beta, log_alpha, state)
    assert_same(in_chunks(source, q, C), [y, *([states[:, last]] if keep else [])], [q, v, *raw, logits, decay, *given])


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_a_decay_a_channel_equals_the_token_loop(case):
    (K, V), T, C = case["sizes"], case["T"], case["C"]
    q, v, raw, (a, k) = vectors(T, K, V, case["unit"], 2)
    d, step = leaf(X, T, K, seed=6), leaf(X, T, K, seed=7)
    logs, b = rwkv7.FASTEST * torch.sigmoid(3 * d), a * torch.sigmoid(step)
    start, state, given = started(case["start"], K, V)
    keep, last = wanted(case["keep"], T, C)
    source = chunkwise.Channels(*(cut(x, C) for x in (logs, a, b, k, v)), keep, start)
    y, states = rwkv7_loop(q, logs, a, b, k, v, state)
    assert_same(in_chunks(source, q, C), [y, *([states[:, last]] if keep else [])], [q, v, *raw, d, step, *given])


def test_the_recurrence_is_the_printed_one():
    q, v, _, (a, k) = vectors(5, 3, 4, True, 2)
    logs, b, start = -leaf(X, 5, 3).exp(), leaf(X, 5, 3, seed=4), leaf(X, 4, 3)
    mine = recurrent.read(q, logs.exp(), a, b, k, v, start)
    for x, y in zip(mine, rwkv7_loop(q, logs, a, b, k, v, start), strict=True):
        torch.testing.assert_close(x, y, atol=FP64, rtol=0)


def test_three_tokens_by_hand():
    """K = V = 1, k = 1: S = 0.5 * 4 = 2; then 2 + 0.5 (6 - 2) = 4; then 4 + 1 (1 - 4) = 1. Queries are 1, 2, 3."""
    one = torch.ones(1, 1, 3, 1, dtype=torch.float64)
    v, q = (torch.tensor(x, dtype=torch.float64).view(1, 1, 3, 1) for x in ([4.0, 6.0, 1.0], [1.0, 2.0, 3.0]))
    known = coefficients(Rates(torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64).view(1, 1, 3)))
    y, _ = chunkwise.Scalar(one, v, known, ()).read(q)
    assert y.flatten().tolist() == [2.0, 8.0, 3.0]


def test_channels_that_do_not_decay_are_the_delta_rule():
    """docs/equations.md#identities: w = 1, a = beta, kappa = k, k' = beta k."""
    q, v, _, (k,) = vectors(17, 4, 4, True, 1)
    beta = torch.sigmoid(leaf(X, 17))
    scaled = k * beta.unsqueeze(-1)
    mine, _ = chunkwise.Channels(*(cut(x, 8) for x in (0 * k, k, scaled, scaled, v)), ()).read(cut(q, 8))
    theirs, _ = chunkwise.Scalar(cut(k, 8), cut(v, 8), coefficients(Rates(cut(beta, 8))), ()).read(cut(q, 8))
    torch.testing.assert_close(mine, theirs, atol=FP64, rtol=0)


@pytest.mark.parametrize("gated", [False, True])
def test_a_chunk_as_a_whole(gated):
    """Q~, P, T and K~ give what the loop gives, from any state, and are what autograd makes of them."""
    q, v, raw, (k,) = vectors(13, 4, 3, False, 1)
    logits, decay, start = leaf(X, 13, seed=6), leaf(X, 13, shift=1.0, seed=7), leaf(X, 3, 4, seed=8)
    beta, log_alpha = torch.sigmoid(logits), F.logsigmoid(decay) if gated else None
    made = wy.effective(q, k, coefficients(Rates(beta, log_alpha)))
    y, states = delta_loop(q, k, v, beta, log_alpha, start)
    mine = [made.queries @ start.mT + made.scores @ v, start @ made.transition + v.mT @ made.keys]
    assert_same(mine, [y, states[:, -1]], [q, v, *raw, logits, decay, start])
    assert torch.equal(made.scores, made.scores.tril())


@pytest.mark.parametrize("C", [1, 2, 3, 5, 16, 31, 32])
def test_inverse_of_unit_lower_triangles(C):
    """Nothing on or above the diagonal is read; the gradient is that of a general solve."""
    lower = leaf(2, 3, C, C, scale=0.5)
    right = leaf(2, 3, C, 4, seed=1)
    whole = torch.eye(C, dtype=torch.float64) + lower.tril(-1)
    assert_same([wy.solve(lower, right)], [torch.linalg.solve(whole, right)], [lower, right])
    assert_same([wy.inverse(lower)], [torch.linalg.inv(whole)], [lower])


def test_the_inverse_is_accurate_where_all_keys_are_equal():
    """fp32, beta 1: L is all ones, the inverse 1 and -1 on two diagonals. Powers of L reach 1e17 on the way there."""
    ones = torch.ones(1, 64, 64).tril(-1)
    exact = torch.eye(64) - torch.diag(torch.ones(63), -1)
    assert torch.equal(wy.inverse(ones)[0], exact)


def test_rates_of_channels_equal_the_composed_form():
    sources = [leaf(3, 5, 4, seed=i) for i in range(3)] + [leaf(3, 1, 4, seed=i) for i in (3, 4)]
    assert_same(rwkv7.rates(*sources), rwkv7.rates_reference(*sources), sources)


def test_kappa_is_the_key_at_length_one_and_zero_stays_zero():
    """RWKV-7 divides by the norm itself, in values and in gradients; where there is none nothing overflows."""
    d, j, k, xi, rho = [leaf(3, 5, 4, seed=i) for i in range(3)] + [leaf(3, 1, 4, seed=i) for i in (3, 4)]
    _, kappa, *_ = rwkv7.rates(d, j, k, xi, rho)
    assert_same([kappa], [F.normalize(k * xi, dim=-1)], [k, xi])
    zero = torch.zeros(1, 2, 4, requires_grad=True)
    found = rwkv7.rates(zero, zero, zero, torch.ones(1, 1, 4), torch.ones(1, 1, 4))
    assert not found[1].any()
    (grad,) = torch.autograd.grad(sum(each.sum() for each in found), zero)
    assert grad.isfinite().all()


def strong(T, K, dtype, seed=0):
    """Unit keys, many of them nearly equal, and steps close to 1: as much erasing as there can be."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(X, T, K, generator=generator, dtype=torch.float64) for _ in range(3))
    k[:, ::2] = k[:, :1] + 0.01 * k[:, ::2]
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    beta = 1 - 0.01 * torch.rand(X, T, generator=generator, dtype=torch.float64)
    log_alpha = -0.1 * torch.rand(X, T, generator=generator, dtype=torch.float64)
    logs = rwkv7.FASTEST * torch.rand(X, T, K, generator=generator, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (q, k, v, beta, log_alpha, logs)]


def outputs_and_gradients(rule, dtype, device, T=1024):
    q, k, v, beta, log_alpha, logs = leaves = strong(T, 16, dtype)
    C = chunkwise.CHANNELS_CHUNK if rule == "channels" else costs(device).delta_chunk
    if rule == "channels":
        scaled = k * beta.unsqueeze(-1)
        source = chunkwise.Channels(*(cut(x, C) for x in (logs, k, scaled, scaled, v)), ())
    else:
        known = coefficients(Rates(cut(beta, C), cut(log_alpha, C) if rule == "gated" else None))
        source = chunkwise.Scalar(cut(k, C), cut(v, C), known, ())
    (y,) = in_chunks(source, q, C)
    return [y, *torch.autograd.grad(y.square().mean(), leaves, allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("rule", ["delta", "gated", "channels"])
def test_single_precision_stays_near_double(rule, device):
    """T = 1024, outputs and all gradients, in the chunks of each device."""
    single, double = (outputs_and_gradients(rule, dtype, device) for dtype in (torch.float32, torch.float64))
    for mine, exact in zip(single, double, strict=True):
        assert (mine - exact).abs().max() <= FP32 * exact.abs().max()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("strength", [0.0, 20.0, 2000.0])
def test_a_long_sequence_neither_overflows_nor_underflows(strength, device):
    """T = 4096, from no decay to one that is zero in fp32 within a token; channels at their fastest."""
    q, k, v, beta, _, logs = strong(4096, 8, torch.float32)
    log_alpha = torch.full_like(beta, -strength).detach().requires_grad_()
    C = size = costs(device).delta_chunk
    scalar = chunkwise.Scalar(cut(k, C), cut(v, C), coefficients(Rates(cut(beta, C), cut(log_alpha, C))), ())
    C = chunkwise.CHANNELS_CHUNK
    fastest = (0 * logs + rwkv7.FASTEST) if strength else 0 * logs
    channel = chunkwise.Channels(*(cut(x, C) for x in (fastest, k, k, k, v)), ())
    for source, own in ((scalar, size), (channel, C)):
        (y,) = in_chunks(source, q, own)
        leaves = [q, k, v, beta, log_alpha, logs]
        grads = torch.autograd.grad(y.square().mean(), leaves, allow_unused=True, materialize_grads=True)
        assert y.isfinite().all()
        assert all(grad.isfinite().all() for grad in grads)
        assert y.abs().max() < 100

"""The WY form of a chunk's writes: the triangular system that its residuals solve, and what follows from it.

By subject:
- `solve`, `inverse`: unit lower triangular systems (I + L) z = r, many small ones at once;
- `effective`: what a chunk of the (gated) delta rule does as a whole to a state and to its tokens' queries;
- `scale_channels`, `solve_channels`: the same system where every channel has its own decay (RWKV-7).

Shapes: C tokens of a chunk, K key width, V value width, E right-hand sides; any leading axes.

See docs/equations.md#erasing-in-chunks (Yang et al., arXiv 2406.06484 and 2412.06464).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.constants import identity, once
from mclab.kernels.fastweight.rates import Coefficients


def solve(lower: Tensor, right: Tensor) -> Tensor:
    """Return z [..., C, E] with (I + L) z = r.

    `lower` is L [..., C, C], of which only the part below the diagonal is read; `right` is r.
    """
    solved: Tensor = _Solve.apply(lower, right)  # type: ignore[no-untyped-call]
    return solved


def inverse(lower: Tensor) -> Tensor:
    """Return (I + L)^-1 [..., C, C], with its gradient. `lower` is L, as in `solve`."""
    return solve(lower, identity(lower.shape[-1], lower.dtype, lower.device).expand_as(lower))


class _Solve(torch.autograd.Function):
    """Backward, with U the inverse: dr = U^T dz, dL = -dr z^T below the diagonal."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor, right: Tensor) -> Tensor:
        inverse = _inverse(lower)
        solved = inverse @ right
        ctx.save_for_backward(inverse, solved)
        return solved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        inverse, solved = ctx.saved_tensors
        grad_right = inverse.mT @ grads[0]
        return (grad_right @ solved.mT).neg_().tril_(-1), grad_right


def _inverse(lower: Tensor) -> Tensor:
    """Return (I + L)^-1 without a gradient, built from the diagonal outward.

    The inverse of a matrix with the blocks P and Q on the diagonal and L below is [[P^-1, 0], [-Q^-1 L P^-1, Q^-1]].
    That takes log2 C rounds of batched products, C^3 / 3 multiply-adds, and is as accurate as substitution. The product
    (I - L)(I + L^2)(I + L^4)... is not: its factors grow like binomials where keys are equal.
    """
    C = lower.shape[-1]
    size = 1 << (C - 1).bit_length()
    if size > C:
        lower = F.pad(lower, (0, size - C, 0, size - C))
    made = torch.zeros_like(lower, memory_format=torch.contiguous_format)
    made.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    half = 1
    while half < size:
        own, given = _diagonal_blocks(made, 2 * half), _diagonal_blocks(lower, 2 * half)
        between = given[..., half:, :half]
        if half > 1:
            between = own[..., half:, half:] @ between @ own[..., :half, :half]
        own[..., half:, :half] = -between
        half *= 2
    return made[..., :C, :C]


def _diagonal_blocks(x: Tensor, size: int) -> Tensor:
    """Return a view of the blocks on the diagonal of `x` [..., C, C], [..., C / size, size, size]."""
    blocks = x.unflatten(-1, (-1, size)).unflatten(-3, (-1, size))
    return blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)


class EffectiveChunk(NamedTuple):
    """A chunk of the (gated) delta rule as a linear map: y = Q~ S_0^T + P V and S_C = S_0 T + V^T K~.

    `queries` Q~ [..., C, K]: the state S_0 carried in adds S_0 q~_t to the output of token t. `scores` P [..., C, C]:
    the values V of the chunk add P V to the output. `transition` T [..., K, K]: the chunk turns the state S_0 into S_0
    T. `keys` K~ [..., C, K]: the chunk adds V^T K~ to the state. None of the four depends on values or states.
    """

    queries: Tensor
    scores: Tensor
    transition: Tensor
    keys: Tensor


def effective(q: Tensor, k: Tensor, coefficients: Coefficients) -> EffectiveChunk:
    """Return the `EffectiveChunk` of q and k [..., C, K] and the `coefficients` of Rates(beta, log alpha).

    Log alpha may be None. With c_tj = L_tj beta_j, L and A the products of decays (chunkwise.py), U = (I + tril(c * K
    K^T, -1))^-1 and P = (c * Q K^T) U: K~ = U^T (c_C K), Q~ = A Q - P A K, T = A_C I - (A K)^T K~.
    """
    writes, decay = coefficients.writes, coefficients.decay
    solved = inverse((k @ k.mT) * writes)
    scores = ((q @ k.mT) * writes) @ solved
    keys = solved.mT @ (k * writes[..., -1, :, None])
    kept = identity(k.shape[-1], k.dtype, k.device)
    if decay is not None:
        q, k, kept = (
            x * a for x, a in ((q, decay[..., None]), (k, decay[..., None]), (kept, decay[..., -1, None, None]))
        )
    return EffectiveChunk(q - scores @ k, scores, kept - k.mT @ keys, keys)


def scale_channels(logs: Tensor, a: Tensor, b: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return a' [..., C, K]; b' on top of k' [..., 2C, K]; the latter times A_C; and A [..., C, K].

    `logs` is log w; log w, a, b and k are [..., C, K]. With A_t the product of w over the chunk's tokens up to t:

      a'_t = a_t A_{t-1}, b'_j = b_j / A_j, k'_j = k_j / A_j,

    so that a'_t . b'_j is the sum over channels of a b times the product of w over j < m < t. The quotients are safe as
    long as A is not too small: RWKV-7's w is above e^-0.607, so in chunks of 16 tokens 1 / A is below e^9.7 = 17,000.
    To multiply by A and divide by it again costs a few roundings of relative size, whatever A is. Only values above the
    diagonal grow, and these are discarded.
    """
    made: tuple[Tensor, Tensor, Tensor, Tensor] = _ScaleChannels.apply(logs, a, b, k)  # type: ignore[no-untyped-call]
    return made


class _ScaleChannels(torch.autograd.Function):
    """Backward: db = (d(b') + d(b'') A_C) / A and so on; the gradient of an exponent is gradient times value."""

    @staticmethod
    def forward(ctx: Any, logs: Tensor, a: Tensor, b: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        scale = logs.cumsum(-2).exp_()
        inverse = scale.reciprocal()
        inputs = torch.cat((b, k), -2)
        inputs.unflatten(-2, (2, -1)).mul_(inverse.unsqueeze(-3))
        rows = a.clone(memory_format=torch.contiguous_format)
        rows[..., 1:, :] *= scale[..., :-1, :]
        ctx.save_for_backward(a, b, k, scale, inverse, inputs)
        return rows, inputs, inputs * scale[..., -1:, :], scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        grad_rows, grad_inputs, grad_ends, grad_scale = grads
        a, b, k, scale, inverse, inputs = ctx.saved_tensors
        last, logs = scale[..., -1:, :], grad_scale * scale
        logs[..., -1:, :].addcmul_((grad_ends * inputs).sum(-2, keepdim=True), last)
        both = torch.addcmul(grad_inputs, grad_ends, last)
        both.unflatten(-2, (2, -1)).mul_(inverse.unsqueeze(-3))
        grad_b, grad_k = both.chunk(2, -2)
        logs.addcmul_(grad_b, b, value=-1).addcmul_(grad_k, k, value=-1)
        grad_a = grad_rows.clone(memory_format=torch.contiguous_format)
        grad_a[..., 1:, :] *= scale[..., :-1, :]
        logs[..., :-1, :].addcmul_(grad_a[..., 1:, :], a[..., 1:, :])
        return logs.flip(-2).cumsum(-2).flip(-2), grad_a, grad_b, grad_k


def solve_channels(a: Tensor, inputs: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return W [..., C, K], and what is written if H is zero: -s on top of v, [..., 2C, V].

    `a` is a' [..., C, K], `inputs` b' on top of k' [..., 2C, K] (from `scale_channels`), v [..., C, V]. What a_t reads
    before token t is s_t = (W H)_t + (U tril(A' K'^T, -1) V)_t, with U = (I + tril(A' B'^T, -1))^-1, W = U A', and
    H = S^T the state carried into the chunk. The writes are -s_t with the key b'_t and v_t with the key k'_t.
    """
    made: tuple[Tensor, Tensor] = _SolveChannels.apply(a, inputs, v)  # type: ignore[no-untyped-call]
    return made


class _SolveChannels(torch.autograd.Function):
    """Backward, with N = tril(A' K'^T, -1), e = U^T dW, f = U^T d(-s): dA' gets e, dV gets -N^T f; below the diagonal
    d(A' B'^T) = -e W^T - f (-s)^T and d(A' K'^T) = -f v^T."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, inputs: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        C = a.shape[-2]
        scores = a @ inputs.mT
        inverse, before = _inverse(scores[..., :C]), scores[..., C:].tril(-1).neg_()
        reads, writes = inverse @ a, torch.cat((inverse @ (before @ v), v), -2)
        ctx.save_for_backward(a, inputs, inverse, before, reads, writes)
        return reads, writes

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        a, inputs, inverse, before, reads, writes = ctx.saved_tensors
        C, (grad_reads, grad_writes) = a.shape[-2], grads
        grad_a, grad_s = inverse.mT @ grad_reads, inverse.mT @ grad_writes[..., :C, :]
        scores = grad_s @ writes.mT
        scores[..., :C] += grad_a @ reads.mT
        scores *= _below(C, a.dtype, a.device)
        grad_v = before.mT @ grad_s
        return grad_a + scores @ inputs, scores.mT @ a, grad_v.add_(grad_writes[..., C:, :])


@once
def _below(C: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [C, 2C], both halves of which are -1 below the diagonal, else 0."""
    return torch.ones(C, C, dtype=dtype, device=device).tril(-1).neg().repeat(1, 2)

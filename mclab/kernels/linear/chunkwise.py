"""This module computes the linear memory's weighted read without a loop over tokens, in two exact forms.

Both compute y_t = sum_n w_t^(n) M^(n) q_t (see `recurrent.weighted_read`). M^(n) is the sum of v_j k_j^T over segment
n, but in t's segment only over the tokens up to t. The quadratic form is causal attention whose scores are weighted per
segment, O(T^2 (K + V)). The cached-state form uses scores within a segment, and products with the kept states across
segments, O(T S (K + V) + T N K V). Shapes: G = R*B*H folded, T time (a multiple of S here; the caller pads), K key
width, V value width, S segment length, N segments.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.constants import once
from mclab.kernels.dispatch import Costs, costs

#: Tokens in a chunk of the plain read; the result does not depend on it.
CHUNK = 64


def segment_states(k_GTK: Tensor, v_GTV: Tensor, segment: int) -> Tensor:
    """Return the sum of v_t k_t^T over the tokens of each segment, [G, N, V, K]."""
    k_GNSK, v_GNSV = k_GTK.unflatten(1, (-1, segment)), v_GTV.unflatten(1, (-1, segment))
    return v_GNSV.transpose(-1, -2) @ k_GNSK


def plain_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tensor:
    """Return causal linear attention, y_t = sum_{j <= t} (q_t . k_j) v_j, [G, T, V]; T may have any value."""
    T, K, V = *q_GTK.shape[1:], v_GTV.shape[-1]
    if T <= CHUNK or T * T * (K + V) <= T * CHUNK * (K + V) + 2 * T * K * V:
        return (q_GTK @ k_GTK.transpose(-1, -2)).tril() @ v_GTV
    short = -T % CHUNK
    q, k, v = (F.pad(x, (0, 0, 0, short)) for x in (q_GTK, k_GTK, v_GTV))
    states_GNVK = segment_states(k, v, CHUNK)
    before_GNVK = states_GNVK.cumsum(1) - states_GNVK
    return online_read(q, k, v, before_GNVK, CHUNK)[:, :T]


def weighted_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """Return the weighted read by the cheaper of the two forms (`weighted_costs`), [G, T, V].

    `weights` is [G, T, N] or [T, N].
    """
    G, T, K = q_GTK.shape
    quadratic, cached = weighted_costs(G, T, K, v_GTV.shape[-1], segment, costs(q_GTK.device.type))
    form = quadratic_read if quadratic <= cached else cached_read
    return form(q_GTK, k_GTK, v_GTV, weights, segment)


def weighted_costs(G: int, T: int, K: int, V: int, segment: int, on: Costs) -> tuple[int, int]:
    """Return the costs of the quadratic and of the cached-state form, in multiply-adds or what takes the same time."""
    G = on.folded(G)
    return G * quadratic_flops(T, K, V), G * cached_flops(T, K, V, segment) + (T // segment - 1) * on.turn


def quadratic_flops(T: int, K: int, V: int) -> int:
    """Return the number of multiply-adds of the quadratic form's two products, for one sequence and head."""
    return T * T * (K + V)


def cached_flops(T: int, K: int, V: int, segment: int) -> int:
    """Return the multiply-adds of the cached-state form: within segments, for the states, and across segments."""
    return T * segment * (K + V) + T * K * V + T * (T // segment - 1) // 2 * K * V


def online_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, before: Tensor | None, segment: int) -> Tensor:
    """Return what each token reads of its online memory, the segment up to the token itself: [G, T, V].

    `before` [G, N, V, K], if given, is the state that each segment began with.
    """
    q, k, v = (x.unflatten(1, (-1, segment)) for x in (q_GTK, k_GTK, v_GTV))
    y = ((q @ k.transpose(-1, -2)).tril() @ v).flatten(1, 2)
    return y if before is None else y + (q @ before.transpose(-1, -2)).flatten(1, 2)


def quadratic_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """Return the weighted read by causal attention whose scores are weighted per segment, [G, T, V]."""
    result: Tensor = _QuadraticRead.apply(q_GTK, k_GTK, v_GTV, weights, segment)  # type: ignore[no-untyped-call]
    return result


def cached_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """Return the weighted read by scores in a token's segment and by the kept states of earlier segments, [G, T, V]."""
    result: Tensor = _CachedRead.apply(q_GTK, k_GTK, v_GTV, weights, segment)  # type: ignore[no-untyped-call]
    return result


class _QuadraticRead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, weights: Tensor, segment: int) -> Tensor:
        scores_GTT = (q @ k.transpose(-1, -2)).tril_()
        ctx.save_for_backward(q, k, v, weights, scores_GTT)
        ctx.segment = segment
        return _weighted(scores_GTT, weights, segment) @ v

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        q, k, v, weights, scores_GTT = ctx.saved_tensors
        grad_v = _weighted(scores_GTT, weights, ctx.segment).transpose(-1, -2) @ grad
        grad_read_GTT = grad @ v.transpose(-1, -2)
        grad_weights = None
        if ctx.needs_input_grad[3]:
            grad_weights = (grad_read_GTT * scores_GTT).unflatten(-1, (-1, ctx.segment)).sum(-1)
        grad_scores = grad_read_GTT.unflatten(-1, (-1, ctx.segment)).mul_(weights.unsqueeze(-1)).flatten(-2).tril_()
        return grad_scores @ k, grad_scores.transpose(-1, -2) @ q, grad_v, grad_weights, None


def _weighted(scores_GTT: Tensor, weights: Tensor, segment: int) -> Tensor:
    return (scores_GTT.unflatten(-1, (-1, segment)) * weights.unsqueeze(-1)).flatten(-2)


class _CachedRead(torch.autograd.Function):
    """The weighted read by a loop over segments, so that no token is multiplied with a state that it does not see."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, weights: Tensor, segment: int) -> Tensor:
        weights = weights.expand(q.shape[0], -1, -1)
        own_GT1 = weights.gather(-1, _block(q, segment))
        q_GNSK, k_GNSK, v_GNSV = (x.unflatten(1, (-1, segment)) for x in (q, k, v))
        scores_GNSS = (q_GNSK @ k_GNSK.transpose(-1, -2)).tril_()
        online = (scores_GNSS @ v_GNSV).flatten(1, 2)
        states_GNKV = k_GNSK[:, :-1].transpose(-1, -2) @ v_GNSV[:, :-1]
        y = online * own_GT1
        for n in range(states_GNKV.shape[1]):
            later = slice((n + 1) * segment, None)
            y[:, later].addcmul_(weights[:, later, n, None], q[:, later] @ states_GNKV[:, n])
        ctx.save_for_backward(q, k, v, weights, own_GT1, scores_GNSS, online, states_GNKV)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        q, k, v, weights, own_GT1, scores_GNSS, online, states_GNKV = ctx.saved_tensors
        segment = scores_GNSS.shape[-1]
        q_GNSK, k_GNSK, v_GNSV = (x.unflatten(1, (-1, segment)) for x in (q, k, v))
        grad_online_GNSV = (grad * own_GT1).unflatten(1, (-1, segment))
        grad_scores = (grad_online_GNSV @ v_GNSV.transpose(-1, -2)).tril_()
        grad_q = (grad_scores @ k_GNSK).flatten(1, 2)
        grad_k = grad_scores.transpose(-1, -2) @ q_GNSK
        grad_v = scores_GNSS.transpose(-1, -2) @ grad_online_GNSV
        grad_own_GT = torch.linalg.vecdot(grad, online)
        grad_weights = torch.zeros_like(weights).scatter_(-1, _block(q, segment), grad_own_GT.unsqueeze(-1))
        grad_states = torch.empty_like(states_GNKV)
        for n in range(states_GNKV.shape[1]):
            later = slice((n + 1) * segment, None)
            through_GTK = grad[:, later] @ states_GNKV[:, n].transpose(-1, -2)
            grad_weights[:, later, n] = torch.linalg.vecdot(through_GTK, q[:, later])
            grad_q[:, later].addcmul_(weights[:, later, n, None], through_GTK)
            grad_states[:, n] = (weights[:, later, n, None] * q[:, later]).transpose(-1, -2) @ grad[:, later]
        grad_k[:, :-1] += v_GNSV[:, :-1] @ grad_states.transpose(-1, -2)
        grad_v[:, :-1] += k_GNSK[:, :-1] @ grad_states
        return grad_q, grad_k.flatten(1, 2), grad_v.flatten(1, 2), grad_weights, None


def _block(q_GTK: Tensor, segment: int) -> Tensor:
    """Return the number of every token's segment, [G, T, 1]."""
    G, T, _ = q_GTK.shape
    return _blocks(T, segment, q_GTK.device)[None, :, None].expand(G, -1, -1)


@once
def _blocks(T: int, segment: int, device: torch.device) -> Tensor:
    return torch.arange(T, device=device) // segment

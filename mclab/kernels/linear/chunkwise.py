"""The linear memory's weighted read without a loop over tokens, in two exact forms.

Both compute y_t = sum_n w_t^(n) M^(n) q_t (see `recurrent.weighted_read`), with M^(n) the sum of v_j k_j^T over
segment n, cut at t for t's own segment. Quadratic: causal attention whose scores are weighted per segment,
O(T^2 (K + V)). Cached-state: scores within a segment, one matrix product with all kept states across,
O(T S (K + V) + T N K V).
Shapes: G = R*B*H folded, T time (a multiple of S here; the caller pads), K key width, V value width, S segment length,
N segments.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

#: Tokens in a chunk of the plain read, whose result does not depend on it.
CHUNK = 64


def segment_states(k_GTK: Tensor, v_GTV: Tensor, segment: int) -> Tensor:
    """Each segment's own writes, sum of v_t k_t^T over its tokens: [G, N, V, K]."""
    k_GNSK, v_GNSV = k_GTK.unflatten(1, (-1, segment)), v_GTV.unflatten(1, (-1, segment))
    return v_GNSV.transpose(-1, -2) @ k_GNSK


def plain_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tensor:
    """All weights one: causal linear attention, y_t = sum_{j <= t} (q_t . k_j) v_j, for any T: [G, T, V]."""
    T, K, V = *q_GTK.shape[1:], v_GTV.shape[-1]
    if T <= CHUNK or T * T * (K + V) <= T * CHUNK * (K + V) + 2 * T * K * V:
        return (q_GTK @ k_GTK.transpose(-1, -2)).tril() @ v_GTV
    short = -T % CHUNK
    q, k, v = (F.pad(x, (0, 0, 0, short)) for x in (q_GTK, k_GTK, v_GTV))
    states_GNVK = segment_states(k, v, CHUNK)
    before_GNVK = states_GNVK.cumsum(1) - states_GNVK
    past = q.unflatten(1, (-1, CHUNK)) @ before_GNVK.transpose(-1, -2)
    return (_within(q, k, v, CHUNK) + past.flatten(1, 2))[:, :T]


def weighted_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """The cheaper of the two forms by operation count. `weights` is [G, T, N] or [T, N]."""
    T, K, V = *q_GTK.shape[1:], v_GTV.shape[-1]
    if quadratic_flops(T, K, V) <= cached_flops(T, K, V, segment):
        return quadratic_read(q_GTK, k_GTK, v_GTV, weights, segment)
    return cached_read(q_GTK, k_GTK, v_GTV, weights, segment)


def quadratic_flops(T: int, K: int, V: int) -> int:
    """Multiply-adds of the quadratic form's two products, for one sequence and head."""
    return T * T * (K + V)


def cached_flops(T: int, K: int, V: int, segment: int) -> int:
    """Multiply-adds of the cached-state form: within segments, states, across."""
    return T * segment * (K + V) + T * K * V + (T - segment) * (T // segment - 1) * K * V


def quadratic_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """Segment-weighted causal linear attention: [G, T, V]."""
    scores_GTNS = (q_GTK @ k_GTK.transpose(-1, -2)).tril().unflatten(-1, (-1, segment))
    return (scores_GTNS * weights.unsqueeze(-1)).flatten(-2) @ v_GTV


def cached_read(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, weights: Tensor, segment: int) -> Tensor:
    """Own segment by scores, earlier segments by their kept states: [G, T, V]."""
    T, N = q_GTK.shape[1], q_GTK.shape[1] // segment
    block = torch.arange(T, device=q_GTK.device) // segment
    own_TN = block[:, None] == torch.arange(N, device=q_GTK.device)
    online = _within(q_GTK, k_GTK, v_GTV, segment) * (weights * own_TN).sum(-1, keepdim=True)
    if N == 1:
        return online
    # Nobody reads the last segment as a kept one, and the first segment's tokens read none.
    past_TN = block[segment:, None] > torch.arange(N - 1, device=q_GTK.device)
    query_GTNK = (weights[..., segment:, : N - 1] * past_TN).unsqueeze(-1) * q_GTK[:, segment:].unsqueeze(-2)
    states_GNVK = segment_states(k_GTK[:, :-segment], v_GTV[:, :-segment], segment)
    kept = query_GTNK.flatten(-2) @ states_GNVK.transpose(-1, -2).flatten(1, 2)
    return torch.cat([online[:, :segment], online[:, segment:] + kept], dim=1)


def _within(q_GTK: Tensor, k_GTK: Tensor, v_GTV: Tensor, segment: int) -> Tensor:
    q, k, v = (x.unflatten(1, (-1, segment)) for x in (q_GTK, k_GTK, v_GTV))
    return ((q @ k.transpose(-1, -2)).tril() @ v).flatten(1, 2)

"""Log-linear attention in chunks: no loop over tokens, and as many states as the number of chunks has binary digits.

y_t = sum over levels l of lambda_t^(l) S_t^(l) q_t, where S^(l) is the matrix that the rule writes from the tokens of
level l alone, followed by the transitions of all later tokens (Guo et al. 2025, arXiv 2506.04761). The levels are a
Fenwick tree. Positions are counted from 0; level 0 is the token itself; each binary digit l of t that is set gives a
bucket of 2^l earlier tokens, which is level l + 1; the largest bucket comes first. Within a chunk of C = 2^c tokens,
levels 0 to c are in the [C, C] matrix of what a token reads of another token; a bucket of 2^l chunks is level
c + l + 1.

Shapes: M chunks, X folded batch, C tokens, K key width, V value width, n states that a chunk reads, L levels.

See docs/equations.md#log-linear-attention.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mclab.constants import integers, once
from mclab.kernels.delta import wy
from mclab.kernels.fastweight.rates import Coefficients


def count_levels(length: int) -> int:
    """Return the number of levels of a sequence of T = `length` tokens, ceil(log2 T) + 1."""
    return (length - 1).bit_length() + 1


def level(t: int, s: int) -> int:
    """Return the level that token s belongs to for token t, s <= t."""
    if s == t:
        return 0
    digit = t.bit_length() - 1
    return digit + 1 if s < 1 << digit else level(t - (1 << digit), s - (1 << digit))


@once
def level_table(length: int, last: int, device: torch.device) -> Tensor:
    """Return `level(t, s)` of every pair, but at most `last`, [T, T]; it is 0 if s > t.

    Only the highest binary digit in which t and s differ matters: it is set in t alone, and the digits above it are
    equal.
    """
    at = torch.arange(length, device=device)
    apart = at[:, None] ^ at
    digits = sum((apart >= 1 << digit).long() for digit in range(length.bit_length()))
    return torch.where(at[:, None] >= at, digits, 0).clamp(max=last)


class Parts(NamedTuple):
    """The tensors of every chunk that do not depend on the rest of the sequence.

    `own` P [M, X, C, C]: the tokens read P V of the writes of their chunk. `queries` Q [M, X, C, K]: the tokens read Q
    H of a state H = S^T [K, V] that is carried in. `moves` A [M, X, K, K] or [M, X, 1, 1]: the chunk turns a state H
    into A H. `written` [M, X, K, V] is added to the state by the chunk.
    """

    own: Tensor
    queries: Tensor
    moves: Tensor
    written: Tensor


def decayed(q: Tensor, k: Tensor, v: Tensor, coefficients: Coefficients) -> Parts:
    """Return the `Parts` of S_t = alpha_t S_{t-1} + eta_t v_t k_t^T, with the `coefficients` of Rates(eta, log alpha).

    q and k are [M, X, C, K], v [M, X, C, V].
    """
    writes, decay = coefficients.writes, coefficients.decay
    assert decay is not None
    ends = k * writes[:, :, -1].unsqueeze(-1)
    return Parts((q @ k.mT) * writes, q * decay.unsqueeze(-1), decay[:, :, -1:, None], ends.mT @ v)


def delta(q: Tensor, k: Tensor, v: Tensor, coefficients: Coefficients) -> Parts:
    """Return the `Parts` of S_t = alpha_t S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T.

    `coefficients` are those of Rates(beta, log alpha).
    """
    made = wy.effective(q, k, coefficients)
    return Parts(made.scores, made.queries, made.transition.mT, made.keys.mT @ v)


def read(parts: Parts, v: Tensor, weights: Tensor) -> Tensor:
    """Return the reads of the tokens [M, X, C, V], with the `weights` lambda [M, X, C, L] of the levels.

    Levels beyond the last have the weight of the last.
    """
    M, _, C, V = v.shape
    c, last = (C - 1).bit_length(), weights.shape[-1] - 1
    near = level_table(C, last, v.device)
    y = list(((parts.own * weights.gather(-1, near.expand_as(parts.own))) @ v).unbind())
    each = zip(parts.queries.unbind(), parts.moves.unbind(), parts.written.unbind(), weights.unbind(), strict=True)
    states: Tensor | None = None
    for m, (queries, moves, written, own) in enumerate(each):
        if states is not None:
            held = tuple(min(c + digit + 1, last) for digit in reversed(range(m.bit_length())) if m >> digit & 1)
            far = own.index_select(-1, integers(held, v.device)).unsqueeze(-1)
            y[m] = y[m] + ((queries @ states).unflatten(-1, (len(held), V)) * far).sum(2)
        if m + 1 < M:
            states = _passed(states, moves, written, m)
    return torch.stack(y)


def _passed(states: Tensor | None, moves: Tensor, written: Tensor, m: int) -> Tensor:
    """Return the states after chunk m, the largest bucket first, [X, K, n * V].

    All states go through the transition of chunk m. Then the writes of chunk m and the smallest buckets, one for each
    binary 1 at the end of m, are merged into one bucket.
    """
    if states is None:
        return written
    moved = states * moves if moves.shape[-1] == 1 else moves @ states
    merged, V = (~m & (m + 1)).bit_length() - 1, written.shape[-1]
    kept, ending = moved.split([moved.shape[-1] - merged * V, merged * V], -1)
    new = ending.unflatten(-1, (merged, V)).sum(2) + written if merged else written
    return torch.cat((kept, new), -1)

"""Apply each token's own weights to its vector without forming them, forward and backward: for the chunks of one layer.

W_t x_t = sum_s f_ts N_s x_t + sum_{j <= t} c_tj u_j (a_j . x_t), with N_s the slots of the state carried into the chunk
(states.py) and f their factors. Results are added to the tensors in `out`. Shapes: X folded batch (several chunks may
be folded in), C tokens, J writes, s slots, n and w narrow and wide, I and O into and out of the layer.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mclab.kernels.fastweight.states import dots, scaled, summed

#: Number of tokens that share a rectangle of scores. Scores above the diagonal are computed but not needed.
ROWS = 64


def carried(x: Tensor, slots: Tensor, factors: Tensor | None, widens: bool, out: Tensor) -> Tensor | None:
    """Add sum_s f_s N_s x to `out`, with N [X, s * n, w]; the factors multiply the narrow side.

    Returns N x [X, C, s * n] if the layer narrows, else None.
    """
    if widens:
        out.baddbmm_(scaled(x, factors), slots)
        return None
    through = torch.bmm(x, slots.mT)
    out += summed(through, factors)
    return through


def carried_backward(
    grad: Tensor,
    x: Tensor,
    slots: Tensor,
    factors: Tensor | None,
    widens: bool,
    through: Tensor | None,
    out: tuple[Tensor, Tensor, Tensor | None],
) -> None:
    """Add the gradients of x, N and f to `out`.

    With g = dy: dx = sum_s f_s N_s^T g, dN_s = sum_t f_ts g_t x_t^T, df_ts = g_t . N_s x_t.
    """
    grad_x, grad_slots, grad_factors = out
    if widens:
        through, narrow = torch.bmm(grad, slots.mT), x
        grad_x += summed(through, factors)
        grad_slots.baddbmm_(scaled(x, factors).mT, grad)
    else:
        heavy, narrow = scaled(grad, factors), grad
        grad_x.baddbmm_(heavy, slots)
        grad_slots.baddbmm_(heavy.mT, x)
    if grad_factors is not None:
        assert through is not None
        grad_factors += dots(through, narrow, grad_factors.shape[2])


def within(x: Tensor, writes: Tensor, inputs: Tensor, updates: Tensor, scores: Tensor, out: Tensor) -> None:
    """Add sum_j c_tj u_j (a_j . x_t) to `out`, and write P = x a^T to `scores`.

    c is [X, C, J], a [X, J, I], u [X, J, O].
    """
    for rows, seen, both in _rectangles((x, out), (inputs, updates), (writes, scores)):
        (x_r, out_r), (a, u), (weight, score) = rows, seen, both
        torch.bmm(x_r, a.mT, out=score)
        out_r.baddbmm_(score * weight, u)


def within_backward(
    grad: Tensor,
    x: Tensor,
    writes: Tensor,
    inputs: Tensor,
    updates: Tensor,
    scores: Tensor,
    out: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    """Add the gradients of x, c, a and u to `out`.

    With g = dy, Q = P * c: dQ = g u^T, dc = dQ * P, dx = (dQ * c) a, da = (dQ * c)^T x, du = Q^T g.
    """
    columns, squares = (inputs, updates, *out[2:]), (writes, scores, out[1])
    for rows, seen, both in _rectangles((grad, x, out[0]), columns, squares):
        (grad_r, x_r, grad_x), (a, u, grad_a, grad_u), (weight, score, grad_weight) = rows, seen, both
        grad_score = torch.bmm(grad_r, u.mT)
        grad_weight.addcmul_(grad_score, score)
        grad_score *= weight
        grad_x.baddbmm_(grad_score, a)
        grad_a.baddbmm_(grad_score.mT, x_r)
        grad_u.baddbmm_((score * weight).mT, grad_r)


def _rectangles(
    rows: Sequence[Tensor], columns: Sequence[Tensor], both: Sequence[Tensor]
) -> Iterator[tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]]:
    """Yield `ROWS` tokens at a time with the columns that they see, of tensors [X, C, .], [X, J, .] and [X, C, J]."""
    C, J = both[0].shape[1:]
    if C <= ROWS:
        yield rows, columns, both
        return
    for start in range(0, C, ROWS):
        count = min(ROWS, C - start)
        seen = start + count + J - C
        yield (
            [x.narrow(1, start, count) for x in rows],
            [x.narrow(1, 0, seen) for x in columns],
            [x.narrow(1, start, count).narrow(2, 0, seen) for x in both],
        )

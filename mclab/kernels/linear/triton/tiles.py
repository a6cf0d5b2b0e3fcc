"""What the three Flash-GRM kernels share.

Shapes: a tile has BT rows (tokens that read), BN columns (tokens that were written) and NSEG segments of SP columns
each; KP and VP are widths padded to powers of two.

There are two layouts of columns. With `MANY` (S <= BN), a tile holds NSEG = BN / SP whole segments, SP the power of two
at or above S, so that a sum over a segment is a reshape. Else a tile is a part of one segment, and sums over a segment
are accumulated over its tiles. Without a gate, segments do not matter, and a tile counts as one segment.
"""
# Triton's language is not typed.
# mypy: ignore-errors

import triton
import triton.language as tl

from mclab.kernels.tiles import product

NONE: tl.constexpr = tl.constexpr(0)
CONTEXT: tl.constexpr = tl.constexpr(1)
INPUT: tl.constexpr = tl.constexpr(2)


@triton.jit
def load(base, rows, T, W: tl.constexpr, WP: tl.constexpr):
    """[., WP]: the given rows of a matrix [T, W], and zeros outside of the matrix."""
    columns = tl.arange(0, WP)
    inside = (rows[:, None] < T) & (columns[None, :] < W)
    return tl.load(base + rows[:, None].to(tl.int64) * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def load_columns(base, tokens, known, W: tl.constexpr, WP: tl.constexpr):
    """As `load`, for `tokens`; those that are not `known` get zeros."""
    columns = tl.arange(0, WP)
    inside = known[:, None] & (columns[None, :] < W)
    return tl.load(base + tokens[:, None].to(tl.int64) * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def store(base, rows, known, x, W: tl.constexpr, WP: tl.constexpr):
    """Write the rows that are `known` to a matrix [., W]."""
    columns = tl.arange(0, WP)
    inside = known[:, None] & (columns[None, :] < W)
    tl.store(base + rows[:, None].to(tl.int64) * W + columns[None, :], x, mask=inside)


@triton.jit
def opened(
    q, k, v, u, p, T, S, K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, BT: tl.constexpr, GATE: tl.constexpr
):  # fmt: skip
    """Return what a program by rows begins with: its sequence g, its rows, their segments and the last row; k, v and p
    of that sequence; q and u of the rows.
    """
    g = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BT + tl.arange(0, BT)
    last = tl.minimum(tl.program_id(1) * BT + BT, T) - 1
    q_rows = load(q + g * T * K, rows, T, K, KP)
    u_rows = q_rows
    if GATE == CONTEXT:
        u_rows = load(u + g * T * K, rows, T, K, KP)
    return g, rows, rows // S, last, k + g * T * K, v + g * T * V, p + g * T * K, q_rows, u_rows


@triton.jit
def whole_tile(n0, T, S, BN: tl.constexpr, SP: tl.constexpr):
    """With `MANY`: the token of each column, and whether the column has one."""
    column = tl.arange(0, BN)
    place = column % SP
    token = (n0 + column // SP) * S + place
    return token, (place < S) & (token < T)


@triton.jit
def by_segment(x, BT: tl.constexpr, NSEG: tl.constexpr, SP: tl.constexpr):
    """[BT, NSEG]: the sums of `x` [BT, NSEG * SP] over the columns of each segment."""
    return tl.sum(tl.reshape(x, [BT, NSEG, SP]), 2)


@triton.jit
def by_column(x, BT: tl.constexpr, NSEG: tl.constexpr, SP: tl.constexpr):
    """[BT, NSEG * SP]: the number of each segment, repeated in all of its columns; the transpose of `by_segment`."""
    wide = tl.broadcast_to(tl.reshape(x, [BT, NSEG, 1]), [BT, NSEG, SP])
    return tl.reshape(wide, [BT, NSEG * SP])


@triton.jit
def factors(segments, rows, S, scale, MEAN: tl.constexpr, SUM: tl.constexpr):
    """[BT, NSEG]: the factors that turn products with sums of keys into scores.

    In t's own segment the sum has only the keys up to t.
    """
    made = tl.zeros([rows.shape[0], segments.shape[0]], SUM) + scale
    if MEAN:
        made = made / tl.where(segments[None, :] == (rows // S)[:, None], (rows % S + 1)[:, None], S).to(SUM)
    return made


@triton.jit
def given_logits(base, rows, segments, T, N):
    """[BT, NSEG]: the entries of given logits [T, N] for these rows and segments."""
    inside = (rows[:, None] < T) & (segments[None, :] < N)
    return tl.load(base + rows[:, None].to(tl.int64) * N + segments[None, :], mask=inside, other=0.0)


@triton.jit
def pooled_upto(sums, p, mask, before, IP: tl.constexpr, SUM: tl.constexpr):
    """Add the keys of a tile that a row sees to the row's sum of keys [BT, KP].

    `before` is True if every row sees all keys of the tile.
    """
    if before:  # noqa: SIM108, a ternary would compute both
        made = sums + tl.sum(p.to(SUM), 0)[None, :]
    else:
        made = sums + product(mask.to(p.dtype), p, IP, SUM)
    return made

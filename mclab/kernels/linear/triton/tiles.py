"""Functions that the three Flash-GRM kernels share.

Shapes: a tile has BT rows (tokens that read), BN columns (tokens that were written) and NSEG segments of SP columns
each; KP and VP are widths padded to powers of two.

There are two layouts of columns. With `MANY` (S <= BN), a tile has NSEG = BN / SP whole segments, where SP is the power
of two at or above S, so that a sum over a segment is a reshape. Else a tile is a part of one segment, and sums over a
segment are accumulated over its tiles. Without a gate, segments do not matter, and a tile counts as one segment.
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
    """Return the given rows of a matrix [T, W], and zeros outside of the matrix: [., WP]."""
    columns = tl.arange(0, WP)
    inside = (rows[:, None] < T) & (columns[None, :] < W)
    return tl.load(base + rows[:, None].to(tl.int64) * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def load_columns(base, tokens, known, W: tl.constexpr, WP: tl.constexpr):
    """Return the rows `tokens` of a matrix [., W], and zeros for tokens that are not `known`."""
    columns = tl.arange(0, WP)
    inside = known[:, None] & (columns[None, :] < W)
    return tl.load(base + tokens[:, None].to(tl.int64) * W + columns[None, :], mask=inside, other=0.0)


@triton.jit
def store(base, rows, known, x, W: tl.constexpr, WP: tl.constexpr):
    """Write those rows of `x` that are `known` to a matrix [., W]."""
    columns = tl.arange(0, WP)
    inside = known[:, None] & (columns[None, :] < W)
    tl.store(base + rows[:, None].to(tl.int64) * W + columns[None, :], x, mask=inside)


@triton.jit
def opened(
    q, k, v, u, p, T, S, K: tl.constexpr, V: tl.constexpr, KP: tl.constexpr, BT: tl.constexpr, GATE: tl.constexpr
):  # fmt: skip
    """Return the tensors that a program by rows begins with.

    They are its sequence g, its rows, their segments and the last row; k, v and p of that sequence; q and u of the
    rows.
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
    """Return the token of each column, and whether the column has one, for a tile of whole segments (`MANY`)."""
    column = tl.arange(0, BN)
    place = column % SP
    token = (n0 + column // SP) * S + place
    return token, (place < S) & (token < T)


@triton.jit
def by_segment(x, BT: tl.constexpr, NSEG: tl.constexpr, SP: tl.constexpr):
    """Return the sums of `x` [BT, NSEG * SP] over the columns of each segment, [BT, NSEG]."""
    return tl.sum(tl.reshape(x, [BT, NSEG, SP]), 2)


@triton.jit
def by_column(x, BT: tl.constexpr, NSEG: tl.constexpr, SP: tl.constexpr):
    """Return the number of each segment in all of its columns, [BT, NSEG * SP]: the transpose of `by_segment`."""
    wide = tl.broadcast_to(tl.reshape(x, [BT, NSEG, 1]), [BT, NSEG, SP])
    return tl.reshape(wide, [BT, NSEG * SP])


@triton.jit
def factors(segments, rows, S, scale, MEAN: tl.constexpr, SUM: tl.constexpr):
    """Return the factors that turn products with sums of keys into scores, [BT, NSEG].

    In t's segment, the sum has only the keys up to t.
    """
    made = tl.zeros([rows.shape[0], segments.shape[0]], SUM) + scale
    if MEAN:
        made = made / tl.where(segments[None, :] == (rows // S)[:, None], (rows % S + 1)[:, None], S).to(SUM)
    return made


@triton.jit
def given_logits(base, rows, segments, T, N):
    """Return the given logits [T, N] of these rows and segments, [BT, NSEG]."""
    inside = (rows[:, None] < T) & (segments[None, :] < N)
    return tl.load(base + rows[:, None].to(tl.int64) * N + segments[None, :], mask=inside, other=0.0)


@triton.jit
def pooled_upto(sums, p, mask, before, IP: tl.constexpr, SUM: tl.constexpr):
    """Return the sums of keys [BT, KP] plus, for each row, the keys of a tile that the row sees.

    `before` is True if every row sees all keys of the tile.
    """
    if before:  # noqa: SIM108, a ternary would compute both
        made = sums + tl.sum(p.to(SUM), 0)[None, :]
    else:
        made = sums + product(mask.to(p.dtype), p, IP, SUM)
    return made

"""This module reads the few memories that each token chose, by sorting tokens into blocks that read the same memory.

The method is that of grouped matrix products in mixtures of experts, with memories instead of experts. A block is `b`
rows of tokens that read one memory, so the memory's matrix is gathered once per block; the last block of a memory is
filled up with zero rows. The number of blocks is an upper bound that does not depend on the choices, so that the host
never waits for the device, and the work can be counted in advance. One more block, of zeros, is read by tokens that
chose fewer memories. Shapes: T tokens of all sequences, k choices per token, Q memories of all sequences, n blocks, b
rows, I and O into and out of a layer, D width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.constants import counting

#: The fewest and the most rows of a block.
LEAST, MOST = 8, 64


def rows_in_block(pairs: int, memories: int) -> int:
    """Return the number of rows of a block: a power of two, from a quarter to half of the reads per memory.

    This size wastes few rows on zeros and needs few blocks.
    """
    share = pairs // (2 * memories)
    return min(max(1 << share.bit_length() >> 1, LEAST), MOST)


def blocks_at_most(pairs: int, memories: int, rows: int) -> int:
    """Return a number of blocks that suffices for `pairs` reads, whichever memories they read."""
    return (pairs + memories * (rows - 1)) // rows


@dataclass(frozen=True)
class Blocks:
    """The row of each choice, and the memory of each block.

    `rows` [k, T] is the row of each choice, among the (n + 1) b rows of all blocks; `owner` [n] is the memory of each
    block; `height` is b.
    """

    rows: Tensor
    owner: Tensor
    height: int

    @property
    def zero(self) -> int:
        """Return the index of the first row of the block of zeros."""
        return len(self.owner) * self.height


def sort_into_blocks(memory_Tk: Tensor, memories: int, pairs: int) -> Blocks:
    """Sort the choices of all tokens into blocks.

    A choice is the number of a memory, below `memories`, or `memories` itself for no memory. `pairs` is at least the
    number of choices that are a memory.
    """
    height = rows_in_block(pairs, memories)
    count = blocks_at_most(pairs, memories, height)
    sorted_memory, order = memory_Tk.flatten().sort(stable=True)
    each = counting(memories + 1, order.device)
    starts = torch.searchsorted(sorted_memory, each)
    taken = (starts.diff() + height - 1) // height
    ends = taken.cumsum(0)
    # Choices of no memory come after the last start; they go to the block of zeros.
    offset = torch.cat(((ends - taken) * height, ends.new_zeros(1))) - starts
    row = counting(len(order), order.device) + offset[sorted_memory]
    row = torch.where(sorted_memory < memories, row, count * height)
    rows = torch.empty_like(row).scatter_(0, order, row).view_as(memory_Tk)
    owner = torch.searchsorted(ends, counting(count, order.device), right=True)
    return Blocks(rows.T.contiguous(), owner.clamp(max=memories - 1), height)


def to_blocks(x_TD: Tensor, blocks: Blocks) -> Tensor:
    """Return the vectors of the tokens `x` [T, D] in the rows of their choices, zeros elsewhere: [n + 1, b, D]."""
    made: Tensor = _ToBlocks.apply(x_TD, blocks)  # type: ignore[no-untyped-call]
    return made


def apply_blocks(x: Tensor, weights: Tensor, blocks: Blocks) -> Tensor:
    """Return W x [n + 1, b, O], with W the matrix of each block in `weights` [Q, O, I], and `x` [n + 1, b, I]."""
    made: Tensor = _ApplyBlocks.apply(x, weights, blocks)  # type: ignore[no-untyped-call]
    return made


def from_blocks(y_TD: Tensor, reads: Tensor, weights_Tk: Tensor, blocks: Blocks) -> Tensor:
    """Return y plus, for each token, the sum over its choices of weight times read: [T, D].

    `reads` [n + 1, b, D] is the read of each row.
    """
    made: Tensor = _FromBlocks.apply(y_TD, reads, weights_Tk, blocks)  # type: ignore[no-untyped-call]
    return made


class _ToBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, blocks: Blocks) -> Tensor:
        ctx.blocks = blocks
        return _scattered([x] * len(blocks.rows), blocks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        flat, (first, *others) = grads[0].flatten(0, 1), ctx.blocks.rows
        grad_x = flat.index_select(0, first)
        for rows in others:
            grad_x += flat.index_select(0, rows)
        return grad_x, None


class _ApplyBlocks(torch.autograd.Function):
    """The product of `apply_blocks`.

    The gathered matrices are not kept: to gather them again costs less than their memory.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, blocks: Blocks) -> Tensor:
        ctx.blocks = blocks
        ctx.save_for_backward(x, weights)
        return _product(x, _gathered(weights, blocks).mT, weights.shape[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, None]:
        (grad,), (x, weights), blocks = grads, ctx.saved_tensors, ctx.blocks
        grad_x = _product(grad, _gathered(weights, blocks), weights.shape[2]) if ctx.needs_input_grad[0] else None
        left, right = (x, grad) if _turned(weights) else (grad, x)
        each = torch.bmm(left[:-1].mT, right[:-1])
        grad_weights = each.new_zeros(len(weights), *each.shape[1:]).index_add_(0, blocks.owner, each)
        return grad_x, grad_weights.mT if _turned(weights) else grad_weights, None


def _turned(weights: Tensor) -> bool:
    """Return whether the matrices are stored transposed."""
    return weights.stride(-1) != 1


def _gathered(weights: Tensor, blocks: Blocks) -> Tensor:
    """Return the matrix of each block [n, O, I], in the memory order of `weights`."""
    if _turned(weights):
        return weights.mT.index_select(0, blocks.owner).mT
    return weights.index_select(0, blocks.owner)


def _product(x: Tensor, matrices: Tensor, width: int) -> Tensor:
    y = x.new_empty(*x.shape[:2], width)
    torch.bmm(x[:-1], matrices, out=y[:-1])
    y[-1] = 0
    return y


class _FromBlocks(torch.autograd.Function):
    """Backward: dreads = w dy in the row of the choice, dw = dy . reads."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, reads: Tensor, weights: Tensor, blocks: Blocks) -> Tensor:
        total, flat = y.clone(), reads.flatten(0, 1)
        for rows, w in zip(blocks.rows, weights.unbind(1), strict=True):
            total.addcmul_(w.unsqueeze(1), flat.index_select(0, rows))
        ctx.blocks = blocks
        ctx.save_for_backward(reads, weights)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (grad,), (reads, weights), blocks = grads, ctx.saved_tensors, ctx.blocks
        grad_reads = _scattered([w.unsqueeze(1) * grad for w in weights.unbind(1)], blocks)
        if not ctx.needs_input_grad[2]:
            return grad, grad_reads, None, None
        flat = reads.flatten(0, 1)
        grad_weights = [torch.linalg.vecdot(grad, flat.index_select(0, rows)) for rows in blocks.rows]
        return grad, grad_reads, torch.stack(grad_weights, 1), None


def _scattered(parts: list[Tensor], blocks: Blocks) -> Tensor:
    """Return [n + 1, b, D] with the vectors `parts` [T, D] of each choice in the rows that `blocks` gives."""
    made = parts[0].new_zeros(blocks.zero + blocks.height, parts[0].shape[1])
    for rows, part in zip(blocks.rows, parts, strict=True):
        made.index_copy_(0, rows, part)
    made[blocks.zero :] = 0  # tokens that chose no memory wrote here
    return made.unflatten(0, (-1, blocks.height))

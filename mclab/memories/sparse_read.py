"""Read the kept memories that each token chose, and no others (SSC; docs/equations.md#sparse-selective-caching).

Shapes: G sequences and heads folded, T time, K key width, V value width, k choices, J = k + 1 columns, the last of them
t's own; Q states, among which every kept memory is one.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.constants import counting, integers
from mclab.kernels import sparse_read as kernel
from mclab.kernels.dispatch import Costs
from mclab.kernels.fastweight.net import Net
from mclab.memories.base import Segments


def spread(weights_GTJ: Tensor, columns_GTJ: Tensor, columns: int) -> Tensor:
    """Return [G, T, columns]: the weights with a column for every memory, zero for memories that are not chosen."""
    wide = weights_GTJ.new_zeros(*weights_GTJ.shape[:2], columns)
    return wide.scatter_add(-1, columns_GTJ, weights_GTJ)


def chosen_reads(segments: Segments, k: int) -> int:
    """Return how many kept memories the tokens of one sequence read in all, each at most k of those it sees."""
    change = [0] * (segments.count + 1)
    for first, end in segments.readers:
        change[first] += 1
        change[end] -= 1
    return segments.segment * sum(min(k, seen) for seen in accumulate(change[:-1]))


def all_reads(segments: Segments) -> int:
    """Return how many kept memories the tokens of one sequence see in all."""
    return segments.segment * sum(end - first for first, end in segments.readers)


def cost_of_chosen(segments: Segments, sequences: int, k: int, states: int, size: int, on: Costs) -> int:
    """Return the cost of reading k kept memories for each token, in multiply-adds or what takes as long as one.

    Each sequence has `states` states of `size` entries.
    """
    sequences = on.folded(sequences)
    pairs, memories = sequences * chosen_reads(segments, k), sequences * states
    height = kernel.rows_in_block(pairs, memories)
    count = kernel.blocks_at_most(pairs, memories, height)
    return count * (height * (size + on.row) + on.gather * size) + on.sorting


def cost_of_all(segments: Segments, sequences: int, size: int, on: Costs) -> int:
    """Return the cost, in the same unit as `cost_of_chosen`, of reading every kept memory that a token sees."""
    return on.folded(sequences) * all_reads(segments) * (size + on.row)


def read(
    net: Net,
    layers: Sequence[Tensor],
    place: Sequence[int],
    segments: Segments,
    q_GTK: Tensor,
    own_GTV: Tensor,
    weights_GTJ: Tensor,
    columns_GTJ: Tensor,
) -> Tensor:
    """Return [G, T, V]: for each token, the weighted sum of its online read (`own_GTV`) and of its reads of the
    memories that it chose.

    `layers` has for each layer the matrices [G, Q, O, I] of all Q states; kept memory n is state `place[n]`.
    """
    G, T, _ = q_GTK.shape
    Q = layers[0].shape[1]
    memory_Tk = _memories(columns_GTJ, place, Q).flatten(0, 1)
    blocks = kernel.sort_into_blocks(memory_Tk, G * Q, G * chosen_reads(segments, memory_Tk.shape[1]))
    h = x = kernel.to_blocks(q_GTK.flatten(0, 1), blocks)
    for i, weights in enumerate(layers):
        h = kernel.apply_blocks(F.gelu(h) if i else h, weights.flatten(0, 1), blocks)
    if net.gain is not None:  # each block has the gain of its sequence; the shared block of zeros has zeros
        net = replace(net, gain=F.pad(net.gain.index_select(0, blocks.owner // Q), (0, 0, 0, 0, 0, 1)))
    weights_Tk = weights_GTJ[..., :-1].flatten(0, 1)
    own_TV = (own_GTV * weights_GTJ[..., -1:]).flatten(0, 1)
    y: Tensor = kernel.from_blocks(own_TV, net.finish(x, h), weights_Tk, blocks).unflatten(0, (G, T))
    return y


def _memories(columns_GTJ: Tensor, place: Sequence[int], states: int) -> Tensor:
    """Return the number of each chosen memory among the G Q states, [G, T, k].

    The number is G Q if a column only repeats the column of t's online memory.
    """
    kept, own = columns_GTJ[..., :-1], columns_GTJ[..., -1:]
    first = counting(kept.shape[0], kept.device)[:, None, None] * states
    # If column n is state n, no table is needed. The 0 is for t's own column, which may come after the kept memories.
    table = None if list(place) == list(range(len(place))) else integers((*place, 0), kept.device)
    return torch.where(kept == own, kept.shape[0] * states, first + (kept if table is None else table[kept]))

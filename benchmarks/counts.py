"""Multiply-adds: predicted by formula, and counted while the work runs. Products alone; elementwise work is left out.

T time, S segment length, N = T / S segments, K = V head width, E hidden width, C chunk; for one sequence and head.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mclab.kernels.sparse_read import blocks_at_most, rows_in_block

#: States that Titans carries: the weights' distance from W^0, and the momentum.
SLOTS = 2


class Count(NamedTuple):
    """Of the forward pass: writing, reading online memories, reading kept ones, and the rest of the layer."""

    write: int
    online: int
    kept: int
    around: int


def kept_reads(T: int, S: int) -> int:
    """Reads of kept memories: every token of a segment reads all earlier ones, T (N - 1) / 2, so about T^2 / 2S."""
    return T * (T // S - 1) // 2


def chosen_reads(T: int, S: int, k: int) -> int:
    """Reads of kept memories when every token chooses k of those it sees."""
    return S * sum(min(k, n) for n in range(T // S))


def sorted_reads(reads: int, memories: int) -> int:
    """Rows that are multiplied for so many reads of all sequences' memories, sorted into blocks of one memory each."""
    rows = rows_in_block(reads, memories)
    return rows * blocks_at_most(reads, memories, rows)


def linear(T: int, S: int, K: int, restart: bool) -> Count:
    """In the cached-state form. Checkpoints are the sums of segments' own states, weighted by sums of gates, [T, N]."""
    N = T // S
    return Count((T - S) * K * K, 2 * T * S * K, kept_reads(T, S) * K * K, T * N * K + (0 if restart else T * N * N))


def linear_chosen(T: int, S: int, K: int, restart: bool) -> Count:
    """What is read of kept memories left out; a checkpoint's online memory adds what its segment began with."""
    return Count(T * K * K, 2 * T * S * K + (0 if restart else T * K * K), 0, T * (T // S) * K)


def titans(T: int, S: int, K: int, E: int, C: int, restart: bool) -> Count:
    """Depth 2, C a divisor of S, decay to W^0."""
    each, N, P = S // C, T // S, 2 * K * E
    write = online = 0
    runs, chunks = (N, each) if restart else (1, N * each)
    for m in range(chunks):
        live = SLOTS if m else 0
        last = m + 1 == chunks
        made = SLOTS if not last else int(restart)  # of the last state only weights are kept, and only for readers
        descent = C * P + C * P // 2
        write += descent + made * C * P + made * live * P + C**3
        online += (1 + live) * C * P + 2 * C * C * (K + E)
    return Count(runs * write, runs * online, kept_reads(T, S) * P, T * N * K)


def counted(work: Callable[[], object]) -> int:
    """Multiply-adds of the matrix products that torch makes in `work`, whoever asks for them."""
    with _Counter() as counter:
        work()
    return counter.total


class _Counter(TorchDispatchMode):
    """torch's own counter follows modules by hooks, which `torch.autograd.grad` does not take."""

    def __init__(self) -> None:
        super().__init__()
        aten = torch.ops.aten
        #: Where the left factor stands among the arguments; the right one is next.
        self.left = {aten.mm: 0, aten.bmm: 0, aten.addmm: 1, aten.baddbmm: 1, aten.addmm_: 1, aten.baddbmm_: 1}
        attention = aten._scaled_dot_product_flash_attention_for_cpu
        #: Where queries and keys of fused attention stand, and its products: scores, read; back, scores again and four.
        self.attention = {attention: (0, 1, 2), aten._scaled_dot_product_flash_attention_for_cpu_backward: (1, 2, 5)}
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = self.left.get(func.overloadpacket)
        if place is not None:
            self.total += args[place].numel() * args[place + 1].shape[-1]
        if func.overloadpacket in self.attention:
            query, key, products = self.attention[func.overloadpacket]
            q, seen = args[query], args[key].shape[-2]
            # Fused causal attention passes over what no token sees; a mask is multiplied out.
            causal = (kwargs or {}).get("is_causal") or any(arg is True for arg in args)
            self.total += products * q.numel() * (seen + 1) // 2 if causal else products * q.numel() * seen
        return func(*args, **(kwargs or {}))

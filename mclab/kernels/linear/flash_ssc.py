"""Flash-SSC: the read of the linear memory with given weights as one Triton kernel, where that kernel is trusted.

`reference` is the same read by torch's forms. Shapes: G = R*B*H folded, T time, K key width, V value width, N segments,
J segments that a token reads; see mclab/kernels/README.md.
"""

import torch
from torch import Tensor

from mclab.kernels.linear import chunkwise
from mclab.kernels.linear.flash_grm import CHECKED
from mclab.kernels.selfcheck import trusted


def weighted_read(
    q: Tensor, k: Tensor, v: Tensor, weights: Tensor, chosen: Tensor | None, segment: int, precision: str
) -> Tensor | None:
    """[G, T, V]: the read by Flash-SSC; None if its kernels fail on this device.

    `weights` are [G, T, J] for the segments `chosen`, or [G, T, N] or [T, N] if that is None.
    """
    from mclab.kernels.linear.triton import ssc

    low, choices = precision == "bf16", 0 if chosen is None else chosen.shape[-1]
    known = ssc.constants(q.shape[-1], v.shape[-1], segment, choices, low, q.dtype == torch.float64)
    of = ("ssc", *((name, str(value)) for name, value in known.items()))
    if not trusted("linear", q.device, precision, of, lambda: _compared(q, v.shape[-1], choices, segment, low)):
        return None
    return ssc.weighted_read(q, k, v, weights, chosen, segment, low)


def reference(q: Tensor, k: Tensor, v: Tensor, weights: Tensor, chosen: Tensor | None, segment: int) -> Tensor:
    """[G, T, V]: the read by torch's forms, with a weight for every segment, for T a multiple of the segment."""
    if chosen is not None:
        weights = weights.new_zeros(*weights.shape[:2], q.shape[1] // segment).scatter_add(-1, chosen, weights)
    return chunkwise.weighted_read(q, k, v, weights, segment)


def _compared(like: Tensor, V: int, choices: int, segment: int, low: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Outputs and gradients of a small case, by the same kernels and by torch's forms in fp64."""
    from mclab.kernels.linear.triton import ssc

    segment = min(segment, CHECKED // 2)
    T, K = min(max(3 * segment, 40), CHECKED) // segment * segment, like.shape[-1]
    drawn = torch.Generator().manual_seed(0)
    given = [torch.randn(2, T, width, generator=drawn) for width in (K, K, V, choices or T // segment)]
    upstream = torch.randn(2, T, V, generator=drawn)
    # Of its own segment and the past ones, some twice.
    own = (torch.arange(T) // segment)[:, None] + 1
    chosen = (torch.rand(2, T, choices, generator=drawn) * own).long().to(like.device) if choices else None
    found = []
    for exact in (False, True):
        dtype = torch.float64 if exact else like.dtype
        *tokens, weights = (x.to(like.device) for x in given)
        tokens = [(x.bfloat16() if low else x).to(dtype).requires_grad_() for x in tokens]
        weights = weights.to(dtype).requires_grad_()
        q, k, v = tokens
        if exact:
            y = reference(q, k, v, weights, chosen, segment)
        else:
            y = ssc.weighted_read(q, k, v, weights, chosen, segment, low)
        found.append([y, *torch.autograd.grad(y, [*tokens, weights], upstream.to(y))])
    return found[0], found[1]

"""Flash-GRM is the gated read of the linear memory as one Triton kernel, used if that kernel passed its self-check.

`reference` is the same read by torch's forms. Shapes as in chunkwise.py; see mclab/kernels/README.md.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.linear import chunkwise
from mclab.kernels.linear.gate import Gate
from mclab.kernels.scores import segment_scores
from mclab.kernels.selfcheck import trusted

#: The longest sequence that a kernel is checked with.
CHECKED = 700


def gated_read(q: Tensor, k: Tensor, v: Tensor, gate: Gate, segment: int, precision: str) -> Tensor | None:
    """Return the gated read by Flash-GRM, [G, T, V]; `None` if its kernels failed their self-check on this device."""
    from mclab.kernels.linear.triton import grm

    low = precision == "bf16"
    known = grm.constants(q.shape[-1], v.shape[-1], segment, gate.kind, gate.mean, low, q.dtype == torch.float64)
    of = tuple((name, str(value)) for name, value in known.items())

    def compare() -> tuple[list[Tensor], list[Tensor]]:
        return _compared(q, v.shape[-1], gate, segment, low)

    if not trusted("linear", q.device, precision, of, compare):
        return None
    return grm.gated_read(q, k, v, gate, segment, low)


def reference(q: Tensor, k: Tensor, v: Tensor, gate: Gate, segment: int) -> Tensor:
    """Return the gated read by torch's forms (scores, softmax, read), [G, T, V]; T is a multiple of the segment."""
    logits, T = gate.logits, q.shape[1]
    if gate.u is not None and gate.pooled is not None:
        running_GT, whole_GTN = segment_scores(gate.u, gate.pooled, segment)
        place_T = torch.arange(T, device=q.device)
        own_TN = (place_T // segment)[:, None] == torch.arange(T // segment, device=q.device)
        counts = torch.where(own_TN, (place_T % segment + 1)[:, None], segment) if gate.mean else 1
        logits = torch.where(own_TN, running_GT.unsqueeze(-1), whole_GTN) * gate.scale / counts
    if logits is None:
        return chunkwise.plain_read(q, k, v)
    later = torch.arange(T, device=q.device)[:, None] // segment < torch.arange(T // segment, device=q.device)
    return chunkwise.weighted_read(q, k, v, logits.masked_fill(later, -torch.inf).softmax(-1), segment)


def _compared(like: Tensor, V: int, gate: Gate, segment: int, low: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Return the outputs and gradients of a small case, by the same kernels and by torch's forms in fp64."""
    from mclab.kernels.linear.triton import grm

    segment = min(segment, CHECKED // 2)
    T, K = (min(3 * segment, CHECKED) if segment > 30 else 90) // segment * segment, like.shape[-1]
    drawn = torch.Generator().manual_seed(0)
    shapes = [K, K, V, *([K, K] if gate.kind == 1 else [T // segment] if gate.kind == 2 else [])]
    given = [torch.randn(2, T, width, generator=drawn) for width in shapes]
    upstream = torch.randn(2, T, V, generator=drawn)
    found = []
    for exact in (False, True):
        dtype = torch.float64 if exact else like.dtype
        own = [(x.bfloat16() if low else x).to(like.device, dtype).requires_grad_() for x in given]
        q, k, v, *rest = own
        mine = gate.given(rest)
        y = reference(q, k, v, mine, segment) if exact else grm.gated_read(q, k, v, mine, segment, low)
        found.append([y, *torch.autograd.grad(y, own, upstream.to(y))])
    return found[0], found[1]


def padded(x: Tensor, segment: int) -> Tensor:
    """Return `x` [G, T, .] with zeros appended up to a multiple of the segment."""
    return F.pad(x, (0, 0, 0, -x.shape[1] % segment))

"""This module reads a sequence that a delta rule has written: by a Triton kernel if it passed its self-check, else by
torch's form.

Shapes as in chunkwise.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.delta.chunkwise import Scalar
from mclab.kernels.fastweight.chunkwise import Layer, OneLayer, Source
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.selfcheck import trusted

#: Tokens in a chunk of the kernel, which solves the triangular system of a chunk by substitution, in registers.
KERNEL_CHUNK = 16


def written(
    rule: str, precision: str | None, keys: Tensor, values: Tensor, rates: Rates, keep: Sequence[int]
) -> Source:
    """Return the `Source` of a sequence that is written with `rates`, beta and log alpha.

    If `precision` is None, it is a `Scalar`. Else `precision` is the training precision, and the Triton kernel of
    `rule` reads the sequence if it passed its self-check.
    """
    if precision is None:
        return Scalar(keys, values, coefficients(rates), keep)
    return _Checked(rule, precision, keys, values, rates, keep)


@dataclass(frozen=True)
class _Checked(OneLayer):
    rule: str
    precision: str
    keys: Tensor
    values: Tensor
    rates: Rates
    keep: Sequence[int]

    def layers(self) -> list[Layer]:
        return Scalar(self.keys, self.values, coefficients(self.rates), self.keep).layers()

    def read(self, q: Tensor) -> tuple[Tensor, list[Tensor]]:
        from mclab.kernels.delta.triton import read as kernel

        low, gated, V = self.precision == "bf16", self.rates.log_alpha is not None, self.values.shape[-1]
        known = kernel.constants(q.shape[-1], V, q.shape[2], gated, False, low, q.dtype == torch.float64)
        of = tuple((name, str(value)) for name, value in known.items())
        if not trusted(self.rule, q.device, self.precision, of, lambda: _compared(q, V, gated, low)):
            return super().read(q)
        y, kept = kernel.read(q, self.keys, self.values, self.rates, self.keep, low=low)
        return y, [] if kept is None else [kept]


def _compared(like: Tensor, V: int, gated: bool, low: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Return the results of the kernel and of torch's form in fp64 for two chunks of two sequences.

    Each list has the outputs, the last state and the gradients.
    """
    from mclab.kernels.delta.triton import read as kernel

    (C, K), drawn = like.shape[2:], torch.Generator().manual_seed(0)
    given = [F.normalize(torch.randn(2, 2, C, K, generator=drawn), dim=-1) for _ in range(2)]
    given += [torch.randn(2, 2, C, V, generator=drawn), torch.rand(2, 2, C, generator=drawn)]
    given += [F.logsigmoid(torch.randn(2, 2, C, generator=drawn) + 2)] * gated
    found = []
    for exact in (False, True):
        own = [x.to(like.device, torch.float64 if exact else like.dtype).requires_grad_() for x in given]
        q, k, v, *each = own
        rates = Rates(*each)
        if exact:
            y, (kept,) = Scalar(k, v, coefficients(rates), (1,)).read(q)
        else:
            y, last = kernel.read(q, k, v, rates, (1,), low=low)
            assert last is not None
            kept = last
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(x.shape, generator=upstream).to(x) for x in (y, kept)]
        found.append([y, kept, *torch.autograd.grad([y, kept], own, ups)])
    return found[0], found[1]

"""This module computes the coefficients of tokens in the form that the reads and transitions of chunks need.

Shapes as in chunkwise.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.kernels.fastweight.rates import Coefficients


@dataclass(frozen=True)
class Steps:
    """The coefficients of each chunk's reads and transitions.

    `writes` c is [M, X, C, J], `factors` [M, X, C, s], `mix` [M, X, s, s], `ends` e [M, X, J, s].
    """

    writes: Tensor
    slots: int
    factors: Tensor | None
    mix: Tensor | None
    ends: Tensor


def steps(c: Coefficients, ends: Sequence[int]) -> Steps:
    """Return the `Steps` of coefficients `c`; `ends` has the index of each chunk's last token."""
    written = [at_ends(c.writes, ends)]
    if c.decay is None and c.carry is None:
        return Steps(c.writes, 1, None, None, written[0].unsqueeze(-1))
    decay = torch.ones_like(c.writes[..., 0]) if c.decay is None else c.decay
    factors, rows = [decay], [at_ends(decay, ends)]
    if c.carry is not None and c.momentum_decay is not None and c.momentum_writes is not None:
        factors.append(c.carry)
        written.append(c.momentum_writes)
        last = c.momentum_decay.squeeze(-1)
        rows += [at_ends(c.carry, ends), torch.zeros_like(last), last]
    r = len(written)
    mix = torch.stack(rows, -1).unflatten(-1, (r, r))
    return Steps(c.writes, len(factors), torch.stack(factors, -1), mix, torch.stack(written, -1))


def at_ends(x: Tensor, ends: Sequence[int]) -> Tensor:
    """Return the values of `x` [M, X, C, ...] at each chunk's last token, [M, X, ...]."""
    if len(set(ends)) == 1:
        return x[:, :, ends[0]]
    last = integers(tuple(ends), x.device).view(-1, *(1,) * (x.dim() - 1))
    return x.gather(2, last.expand(-1, x.shape[1], 1, *x.shape[3:])).squeeze(2)

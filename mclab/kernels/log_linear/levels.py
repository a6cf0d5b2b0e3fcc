"""Which level a token of the past is in (Guo et al. 2025, Log-Linear Attention, arXiv 2506.04761; a Fenwick tree).

Positions are counted from 0. Level 0 is the token itself; level l + 1 holds a bucket of 2^l tokens before it. The
tokens before t lie in one bucket for each binary digit of t that is set, the largest first.
"""

import torch
from torch import Tensor

from mclab.tables import once


def count(length: int) -> int:
    """Levels that a sequence of this length has, ceil(log2 T) + 1."""
    return (length - 1).bit_length() + 1


def level(t: int, s: int) -> int:
    """The level of token s for token t, s <= t."""
    if s == t:
        return 0
    digit = t.bit_length() - 1
    return digit + 1 if s < 1 << digit else level(t - (1 << digit), s - (1 << digit))


@once
def table(length: int, last: int, device: torch.device) -> Tensor:
    """[T, T]: `level` of every pair, `last` at most; 0 also where s > t.

    What t and s share above the highest digit in which they differ does not matter; that digit is set in t alone.
    """
    at = torch.arange(length, device=device)
    apart = at[:, None] ^ at
    digits = sum((apart >= 1 << digit).long() for digit in range(length.bit_length()))
    return torch.where(at[:, None] >= at, digits, 0).clamp(max=last)

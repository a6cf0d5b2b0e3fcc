"""The counter-based random stream: every draw is a hash of (domain, seed, index, draw), computed with integers only.

Float functions such as log differ between devices and even between vector lengths, so none is used: only additions,
multiplications, shifts and exclusive ors, which wrap in the same way everywhere. A *key* is one 64-bit integer that
stands for an independent stream; functions take keys of any shape and append an axis. Most of the work is on int32,
which CPUs multiply several times faster than int64.

The finalisers are of the multiply-xorshift kind: `mix` is splitmix64's (Steele, Lea & Flood, OOPSLA 2014).

See docs/equations.md#random-stream.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import torch
from torch import Tensor

from mclab.constants import once

_WEYL = 0x9E3779B97F4A7C15 - (1 << 64)
_FORK = 0xD1342543DE82EF95 - (1 << 64)
_MIX1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX2 = 0x94D049BB133111EB - (1 << 64)
# The 32-bit multipliers below are odd and have no long runs of equal bits.
_WEYL32 = 0x9E3779B1 - (1 << 32)
_MUL1 = 0x7FEB352D
_MUL2 = 0x846CA68B - (1 << 32)
_MUL3 = 0x297A2D39


@lru_cache(maxsize=256)
def scalar(value: int, dtype: torch.dtype) -> Tensor:
    """Return `value` as a tensor on the CPU, which operations on every device accept.

    An operation with a Python number wraps the number each time, which costs 2 microseconds: more than the operation
    itself on a few thousand elements.
    """
    return torch.tensor(value, dtype=dtype)


def _int32(value: int) -> Tensor:
    return scalar(value, torch.int32)


def _int64(value: int) -> Tensor:
    return scalar(value, torch.int64)


def _fold(x: Tensor, bits: int) -> Tensor:
    """Compute x ^= x >>> bits in place.

    `>>` fills the high bits of int64 with copies of the sign; the mask clears them.
    """
    return x.bitwise_xor_((x >> _int64(bits)).bitwise_and_(_int64((1 << (64 - bits)) - 1)))


def mix(x: Tensor) -> Tensor:
    """Hash int64 to int64, one to one and in place: every bit of the result depends on every bit of `x`."""
    _fold(x, 30).mul_(_int64(_MIX1))
    _fold(x, 27).mul_(_int64(_MIX2))
    return _fold(x, 31)


def sample_keys(domain: str, seeds: Sequence[int], start: int, count: int, device: torch.device) -> Tensor:
    """Return [R, B] int64: for each seed, the numbers from which `fork` makes the keys of the samples.

    The samples are `start` to `start + count - 1`. `domain` names the task and the split. Two samples of one domain and
    seed never have the same number. Raises `ValueError` for no seeds or an empty range.
    """
    if not seeds or start < 0 or count < 1:
        raise ValueError(
            f"batch: there must be seeds, start must be >= 0 and count >= 1, got {seeds!r}, {start}, {count}"
        )
    digests = (blake2b(f"mclab/{domain}/{seed:d}".encode(), digest_size=8).digest() for seed in seeds)
    bases = torch.tensor([int.from_bytes(d, "little", signed=True) for d in digests], device=device)
    index = torch.arange(start, start + count, device=device)
    return torch.add(bases[:, None], index, alpha=_WEYL)


def fork(samples: Tensor, ids: Tensor) -> Tensor:
    """Return [N, I] independent keys for `samples` [N] (from `sample_keys`) and the small integers `ids`.

    `ids` is [I] or [N, I].
    """
    return mix(torch.add(samples.unsqueeze(-1), ids, alpha=_FORK))


@once
def numbers(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the numbers 0 to count - 1 as a tensor. It is made once and shared: do not write to it."""
    return torch.arange(count, dtype=dtype, device=device)


def words(keys: Tensor, count: int) -> Tensor:
    """Return [..., count] int32: `count` random numbers for each of `keys` [...], uniform in [0, 2**31).

    Half of the key enters before the first multiplication and half after it: with 32 bits alone, some two of 100,000
    sequences would have the same stream. `>>` on int32 copies the sign, so each fold maps two words to one; therefore
    the result has 31 bits.
    """
    low, high = keys.to(torch.int32).unsqueeze(-1), (keys >> _int64(32)).to(torch.int32).unsqueeze(-1)
    x = torch.add(low, numbers(count, torch.int32, keys.device), alpha=_WEYL32)
    x.bitwise_xor_(x >> _int32(16)).mul_(_int32(_MUL1)).bitwise_xor_(high)
    x.bitwise_xor_(x >> _int32(15)).mul_(_int32(_MUL2))
    x.bitwise_xor_(x >> _int32(17)).mul_(_int32(_MUL3))
    return x.bitwise_xor_(x >> _int32(16))


def scramble(x: Tensor, key: Tensor) -> Tensor:
    """Return a hash of `x` [..., N] int32 with the key `key` [..., 1] int32: [..., N] int32 in [-2**19, 2**19).

    A single call has one multiplication and is too weak as a random stream; several calls, each with another key, make
    a permutation.
    """
    h = torch.add(key, x, alpha=_WEYL32)
    return h.bitwise_xor_(h >> _int32(15)).mul_(_int32(_MUL1)).bitwise_right_shift_(_int32(12))


def below(keys: Tensor, count: int, bound: int | Tensor) -> Tensor:
    """Return [..., count] int64: `count` random numbers for each of `keys` [...], uniform in [0, bound).

    `bound`, a number or [..., 1], is at most 2**31. The method is to multiply and shift; the probability of a number is
    too large by at most the share bound / 2**31.
    """
    return words(keys, count).to(torch.int64).mul_(bound).bitwise_right_shift_(_int64(31))


@once
def salts(count: int, device: torch.device) -> Tensor:
    """Return [count] int64: a hash of each index, to be added if order counts.

    The tensor is made once and shared: do not write to it.
    """
    return mix(torch.arange(1, count + 1, device=device))

"""Draw without replacement from the random stream: by a keyed permutation, and by a race for weighted draws.

Both are exact by construction, need no loop whose length depends on the data, and never wait for the device.

See docs/equations.md#draws.
"""

from decimal import Context, Decimal, localcontext
from functools import lru_cache
from math import isqrt

import torch
from torch import Tensor

from mclab.constants import integers
from mclab.tasks.stream import below, fork, numbers, scalar, scramble

#: Up to this size, sorting one random word per candidate costs less than the permutation, and is exactly uniform.
_RACE_UP_TO = 64
#: The -ln table has 2**12 intervals. Its times (below 2**4) and the costs are fixed-point numbers with 26 and 16
#: fractional bits.
_LOG_BITS, _TIME_BITS, _COST_BITS = 12, 26, 16
_DIGITS = 30


def one_of(samples: Tensor, stream: int, count: int) -> Tensor:
    """Return a random number below `count` for each of `samples` [N] (from `sample_keys`), uniform: [N] int64."""
    if count == 1:
        return torch.zeros_like(samples)
    return below(fork(samples, integers((stream,), samples.device)), 1, count).flatten()


def words_for(sizes: tuple[int, ...]) -> int:
    """Return how many random words `distinct` needs for each number in `sizes`."""
    return max(sizes) if max(sizes) <= _RACE_UP_TO else _rounds(*_sides(max(sizes)))


def distinct(words: Tensor, count: int, sizes: tuple[int, ...]) -> Tensor:
    """Return [..., L, count] int64: for each l, `count` different numbers below sizes[l].

    They are drawn with `words` [..., L, words_for(sizes)].
    """
    if max(sizes) <= _RACE_UP_TO:
        return race(words, count, limits=integers(sizes, words.device)[:, None])
    return _permute(words, count, sizes)


def race(words: Tensor, count: int, costs: Tensor | None = None, limits: Tensor | None = None) -> Tensor:
    """Return [..., count] int64: `count` different numbers below S, drawn one after another with `words` [..., S].

    Candidate i finishes at an exponential time with mean costs[i], and the order of arrival is a draw without
    replacement with weight 1 / costs[i] (Efraimidis & Spirakis, 2006). `costs` [S] int64 comes from `power_costs`;
    without it all candidates are equally likely. `limits` [..., 1] restricts a row to its first candidates, at least
    `count` of them. The low bits of the sorted integers hold the candidate's number, so that there are no ties, which
    devices could break differently.
    """
    index = numbers(words.shape[-1], torch.int64, words.device)
    bits = (words.shape[-1] - 1).bit_length()
    times = words.to(torch.int64) if costs is None else _times(words, costs, bits)
    order = times.bitwise_left_shift_(scalar(bits, torch.int64)).add_(index)
    if limits is not None:
        order.add_(index >= limits, alpha=1 << 62)
    return order.topk(count, dim=-1, largest=False).indices


def _times(words: Tensor, costs: Tensor, bits: int) -> Tensor:
    """Return -ln(words / 2**31) * costs, by linear interpolation in a table; it can be shifted left by `bits`."""
    fraction_bits = 31 - _LOG_BITS
    levels, drops = _log_table(words.device)
    cell = (words >> scalar(fraction_bits, torch.int32)).flatten()
    fraction = (words & scalar((1 << fraction_bits) - 1, torch.int32)).to(torch.int64)
    fraction.mul_(drops.index_select(0, cell).view_as(words)).bitwise_right_shift_(scalar(fraction_bits, torch.int64))
    time = levels.index_select(0, cell).view_as(words).sub_(fraction).mul_(costs)
    excess = _TIME_BITS + 4 + _COST_BITS + 2 * bits - 62
    return time.bitwise_right_shift_(excess) if excess > 0 else time


@lru_cache(maxsize=8)
def _log_table(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return -ln at the left ends of 4096 intervals, and how far it falls within each: fixed point, 26 fractional bits.

    Decimal arithmetic gives the same digits everywhere; libm does not. The first interval begins at 0, where -ln is
    infinite: there a line that starts 2 above the value at the right end has the right mean.
    """
    cells, one = 1 << _LOG_BITS, 1 << _TIME_BITS
    with localcontext(Context(prec=_DIGITS)):
        top = Decimal(cells).ln()
        ends = [round((top - Decimal(u).ln()) * one) for u in range(1, cells + 1)]
    levels = [ends[0] + 2 * one, *ends]
    drops = [left - right for left, right in zip(levels, ends, strict=False)]
    return integers(tuple(levels[:cells]), device), integers(tuple(drops), device)


@lru_cache(maxsize=64)
def power_costs(size: int, exponent: str, device: torch.device) -> Tensor:
    """Return [size] int64: g ** exponent for g = 1 to `size`, fixed point with 16 fractional bits.

    `exponent` is a decimal number as a string, at most 1.
    """
    with localcontext(Context(prec=_DIGITS)):
        costs = tuple(round(Decimal(g) ** Decimal(exponent) * (1 << _COST_BITS)) for g in range(1, size + 1))
    return integers(costs, device)


def _permute(words: Tensor, count: int, sizes: tuple[int, ...]) -> Tensor:
    """Return [..., L, count]: for each l, the first `count` images of a keyed permutation of [0, sizes[l]).

    The Feistel network permutes a rectangle of at least max(sizes) numbers. An image outside [0, sizes[l]) is replaced
    by its own image, again and again, until it is inside (cycle walking). All these cycles go through the few numbers
    from min(sizes) on, so a table of the final image of each of those numbers is enough.
    """
    least = min(sizes)
    left, right = _sides(max(sizes))
    outside = left * right - least
    images = _feistel(words, left, right, _halves(count, least, left, right, words.device)).to(torch.int64)
    if not outside:
        return images
    limits = integers(sizes, words.device)[:, None]
    images, ends = images[..., :count], images[..., count:]
    for _ in range((outside - 1).bit_length()):  # each pass doubles the number of steps along the cycles
        ends = torch.where(ends < limits, ends, ends.gather(-1, (ends - least).clamp_(min=0)))
    walked = ends if outside == 1 else ends.gather(-1, (images - least).clamp_(min=0))
    return torch.where(images < limits, images, walked)


@lru_cache(maxsize=64)
def _halves(count: int, least: int, left: int, right: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return quotients and remainders by `right` of two ranges of numbers, each [I] int32.

    The ranges are 0 to count - 1 and `least` to left * right - 1. Quotients are below `left`.
    """
    numbers = [*range(count), *range(least, left * right)]
    split = torch.tensor([divmod(n, right) for n in numbers], dtype=torch.int32, device=device)
    return split[:, 0].contiguous(), split[:, 1].contiguous()


def _feistel(words: Tensor, left: int, right: int, halves: tuple[Tensor, Tensor]) -> Tensor:
    """Return [..., I] int32: the numbers of `halves` after a permutation of [0, left * right).

    The keys of the rounds are `words` [..., rounds].
    """
    changing, fixed, moduli = *halves, (left, right)
    for number, key in enumerate(words.unsqueeze(-1).unbind(-2)):
        change = scramble(fixed, key).add_(changing)
        _wrap(change, moduli[number % 2])
        changing, fixed = fixed, change
    return changing.mul_(right).add_(fixed)


def _wrap(x: Tensor, modulus: int) -> None:
    """Reduce `x` modulo `modulus` in place; the result is never negative. A mask costs a tenth of a division."""
    if modulus & (modulus - 1):
        x.remainder_(modulus)
    else:
        x.bitwise_and_(scalar(modulus - 1, torch.int32))


@lru_cache(maxsize=64)
def _sides(size: int) -> tuple[int, int]:
    """Return the sides of a nearly square rectangle that holds `size` numbers and only a few more.

    The left side is even: with two odd sides every round is an even permutation, and half of all permutations could
    never occur.
    """
    root = isqrt(size)
    rectangles = ((left, -(-size // left)) for left in range(root // 4 * 2 + 2, 2 * root, 2))
    return min(rectangles, key=lambda sides: (sides[0] * sides[1] - size, abs(sides[0] - sides[1])))


def _rounds(left: int, right: int) -> int:
    """Return how many rounds the network needs so that 1e7 samples do not show its structure.

    Every two rounds the deviation from uniform is divided by the length of a side. Measured on the difference of two
    images of 2e6 keys, in standard deviations of chi-square: sides 6 x 11 leave 6471, 175 and 5.6 at 4, 6 and 8 rounds,
    sides 20 x 25 leave 173 and 0.8 at 4 and 6.
    """
    rounds = 4
    while min(left, right) ** (rounds // 2) < 1 << 18:
        rounds += 2
    return rounds

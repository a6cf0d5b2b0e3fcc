"""Decide which split a sequence belongs to, so that no test sequence is ever trained on.

Each split draws from a separate stream, which is enough in a large space of sequences. In a small space two streams
could give the same sequence by chance, so there the hash of a sequence decides which split it belongs to: half of all
sequences belong to train, a quarter each to valid and test, the same for every seed. A sample that draws a sequence of
another split draws again.

See docs/equations.md#splits.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from mclab.constants import integers

SPLITS = ("train", "valid", "test")

#: In a space of at least this many sequences, separate streams are enough: in a uniform space of this size, 1e7
#: training samples and 1e4 test samples have a sequence in common with probability 4e-4.
ENOUGH = 2**48
#: The most attempts of a sample. With 64, one test sample in 1e8 would find no sequence, which is one run in some
#: 30,000; with 256 it is one sample in 1e32.
ATTEMPTS = 256

#: The quarters of the hash's range that each split has, from the first to the second number.
_QUARTERS = {"train": (0, 1), "valid": (2, 2), "test": (3, 3)}

Drawn = TypeVar("Drawn", bound=tuple[Tensor, ...])


def check_split(split: str) -> None:
    """Raise `ValueError` for a name that is not in SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"split: {split!r} is none of {', '.join(SPLITS)}")


def belongs(fingerprints: Tensor, split: str) -> Tensor:
    """Return [N] bool: whether the sequences with the hashes `fingerprints` [N] belong to `split`.

    The top two bits decide.
    """
    first, last = _QUARTERS[split]
    quarter = (fingerprints >> 62) & 3
    return (quarter >= first) & (quarter <= last)


def settle(
    draw: Callable[[Tensor | slice, Tensor], Drawn], rows: int, space: int, split: str, device: torch.device
) -> Drawn:
    """Return for each row the result of `draw` at the first attempt whose sequence belongs to `split`.

    `draw(rows, attempts)`, both [M] int64, returns tensors with M rows, the last of which is the hashes. In a space of
    `ENOUGH` sequences or more, attempt 0 is taken without a check: that is one call, with a slice of all rows and [1]
    attempts, which never waits for the device. The result does not depend on how many attempts are made at once. Raises
    `ValueError` if a row finds no sequence.
    """
    if space >= ENOUGH:
        return draw(slice(None), integers((0,), device))
    pending = torch.arange(rows, device=device)
    settled: Drawn | None = None
    made = 0
    while made < ATTEMPTS:
        tries = min(ATTEMPTS - made, max(1, max(rows, 64) // len(pending)))
        number = torch.arange(tries, device=device)
        drawn = draw(pending.repeat_interleave(tries), (number + made).repeat(len(pending)))
        good = belongs(drawn[-1], split).view(-1, tries)
        first = torch.where(good, number, tries).amin(-1)
        found = first < tries
        taken = (torch.arange(len(pending), device=device) * tries + first)[found]
        settled = settled or _like(drawn, rows)
        for into, out in zip(settled, drawn, strict=True):
            into[pending[found]] = out[taken]
        pending, made = pending[~found], made + tries
        if not len(pending):
            return settled
    raise ValueError(
        f"split: for {len(pending)} samples of {split} no new sequence was found in {ATTEMPTS} attempts, because the "
        f"task has only {space} sequences; take a larger task"
    )


def _like(drawn: Drawn, rows: int) -> Drawn:
    empty = [tensor.new_empty((rows, *tensor.shape[1:])) for tensor in drawn]
    return drawn._make(empty) if hasattr(drawn, "_make") else type(drawn)(empty)

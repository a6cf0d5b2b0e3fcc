"""Which split a sequence may belong to, so that no test sequence is ever trained on.

Splits draw from separate streams, and in a large space that is enough. In a small one the same sequence would come
up in two streams by chance, so there its own hash says where it belongs: half of all sequences to train, a quarter
each to valid and test, the same for every seed. A sample that draws a sequence of another split draws again.

See docs/equations.md#splits.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from mclab.constants import integers

SPLITS = ("train", "valid", "test")

#: From this many sequences on the streams alone keep splits apart: 1e7 training and 1e4 test samples of a uniform
#: space of this size share one with probability 4e-4.
ENOUGH = 2**48
#: 64 would leave one test sample in 1e8 without a sequence, one run in some 30,000; 256 leave one in 1e32.
ATTEMPTS = 256

#: The quarters of the hash's range: which of SPLITS holds each.
_QUARTERS = {"train": (0, 1), "valid": (2, 2), "test": (3, 3)}

Drawn = TypeVar("Drawn", bound=tuple[Tensor, ...])


def check_split(split: str) -> None:
    """Raises `ValueError` for a name that is not in SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"split: {split!r} is none of {', '.join(SPLITS)}")


def belongs(fingerprints: Tensor, split: str) -> Tensor:
    """[N] int64 hashes to [N] bool: may `split` hold this sequence? The top two bits decide."""
    first, last = _QUARTERS[split]
    quarter = (fingerprints >> 62) & 3
    return (quarter >= first) & (quarter <= last)


def settle(
    draw: Callable[[Tensor | slice, Tensor], Drawn], rows: int, space: int, split: str, device: torch.device
) -> Drawn:
    """What `draw` gives for each row at the first attempt whose sequence may belong to `split`.

    `draw(rows, attempts)`, both [M] int64, returns tensors with M rows, the hashes last. A space of `ENOUGH`
    sequences or more takes attempt 0 unseen (one call for all rows, as a slice, with [1] attempts) and never waits
    for the device. How many attempts are made at once changes no result. Raises `ValueError` if a row finds nothing.
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
        f"split: {len(pending)} {split} samples found no sequence of their own in {ATTEMPTS} attempts; "
        f"the task has only {space} sequences, take a larger one"
    )


def _like(drawn: Drawn, rows: int) -> Drawn:
    empty = [tensor.new_empty((rows, *tensor.shape[1:])) for tensor in drawn]
    return drawn._make(empty) if hasattr(drawn, "_make") else type(drawn)(empty)

"""This module alone launches Triton kernels, so that the launches can be counted.

Without a GPU, kernels run in Triton's interpreter (numpy on the CPU) if the process starts with TRITON_INTERPRET=1:
slow, and for tests.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

#: The most programs along an axis of a grid, except the first axis, which goes to 2^31 - 1.
WIDEST = 65_535


def launch(kernel: Any, grid: tuple[int, ...], like: Tensor, *tensors: Any, **options: Any) -> None:
    """Run a kernel on the device of `like`. If the grid has no programs, nothing is launched.

    Raises `ValueError` for a grid with too many programs along an axis.
    """
    if 0 in grid:
        return
    if any(size > WIDEST for size in grid[1:]):
        raise ValueError(
            f"the kernel's grid {grid} is too large: each axis except the first has at most {WIDEST} programs; take "
            "shorter sequences"
        )
    with torch.cuda.device(like.device) if like.is_cuda else nullcontext():
        _run(kernel, grid, tensors, options)


def _run(kernel: Any, grid: tuple[int, ...], tensors: tuple[Any, ...], options: dict[str, Any]) -> None:
    kernel[grid](*tensors, **options)


def power_of_two(number: int, least: int = 1) -> int:
    """Return the smallest power of two that is at least `number` and at least `least`."""
    return max(least, 1 << (number - 1).bit_length())

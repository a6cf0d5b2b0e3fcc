"""Constant tensors, which depend on shapes alone: made once for each device, and kept (`once`).

A copy from the host in a training step waits for the device each time, and cannot be part of a CUDA graph; a constant
that is computed anew is a launch each time.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

P = ParamSpec("P")
#: The most numbers that are kept in one tensor and in all, and the most tensors. Those asked for longest ago go first.
LARGEST, NUMBERS, TENSORS = 2**22, 2**25, 2**14


class _Store:
    """Tensors by what they were made with, and how many numbers they hold."""

    def __init__(self) -> None:
        self.tensors: OrderedDict[tuple[Any, ...], Tensor] = OrderedDict()
        self.numbers = 0

    def get(self, key: tuple[Any, ...]) -> Tensor | None:
        found = self.tensors.get(key)
        if found is not None:
            self.tensors.move_to_end(key)
        return found

    def put(self, key: tuple[Any, ...], made: Tensor) -> None:
        self.tensors[key] = made
        self.numbers += made.numel()
        while self.numbers > NUMBERS or len(self.tensors) > TENSORS:
            self.numbers -= self.tensors.popitem(last=False)[1].numel()


_store = _Store()


def once(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """`make`, whose arguments can be hashed and name the device, once for each of them. Nobody may write to the result.

    The result is an ordinary tensor wherever it is asked for first, in `torch.inference_mode` too.
    """

    @wraps(make)
    def found(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        if torch.compiler.is_compiling():  # the compiler makes it a constant of the graph
            return make(*args, **kwargs)
        key = (make, args, *kwargs.items())
        known = _store.get(key)
        if known is not None:
            return known
        with torch.inference_mode(False), torch.no_grad():
            made = make(*args, **kwargs)
        if _lasts(made):
            _store.put(key, made)
        return made

    return found


def holdings() -> list[Tensor]:
    """All that is kept now. A captured graph reads these tensors at their addresses, so whoever replays it must hold
    them."""
    return list(_store.tensors.values())


def _lasts(made: Tensor) -> bool:
    """Whether this tensor is still what it is later: not where a graph is captured, whose memory is its own, nor where
    torch only follows shapes."""
    if type(made) is not Tensor or made.numel() > LARGEST:
        return False
    return not (made.is_cuda and torch.cuda.is_current_stream_capturing())


@once
def integers(values: tuple[int, ...], device: torch.device) -> Tensor:
    """These numbers, int64."""
    return torch.tensor(values, dtype=torch.int64, device=device)


@once
def counting(count: int, device: torch.device) -> Tensor:
    """[count] int64: 0 to count - 1."""
    return torch.arange(count, device=device)


@once
def identity(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[size, size]: the identity."""
    return torch.eye(size, dtype=dtype, device=device)


@once
def ones(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """All ones."""
    return torch.ones(shape, dtype=dtype, device=device)


@once
def number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[]: one number."""
    return torch.tensor(value, dtype=dtype, device=device)

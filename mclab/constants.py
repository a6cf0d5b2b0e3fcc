"""This module makes constant tensors that depend only on shapes: `once` makes each once per device and keeps it.

Otherwise a constant copied from the host in every training step would wait for the device each time and could not be
part of a CUDA graph; a constant computed on the device would cost a kernel launch each time.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

P = ParamSpec("P")
#: Limits of the store: entries in one tensor, entries in all tensors, and tensors. The least recently used tensor is
#: dropped first.
LARGEST, NUMBERS, TENSORS = 2**22, 2**25, 2**14


class _Store:
    """The kept tensors, by the function and the arguments that made them, and the number of their elements."""

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
    """Return a function that calls `make` once for each set of arguments and keeps the result.

    The arguments must be hashable, and the device must be one of them. Callers must not write to the result, which is
    an ordinary tensor even if the first call is inside `torch.inference_mode`.
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
    """Return all tensors that are kept now.

    A captured CUDA graph reads these tensors at their addresses, so the code that replays the graph must hold
    references to them.
    """
    return list(_store.tensors.values())


def _lasts(made: Tensor) -> bool:
    """Return whether the tensor `made` can be kept for later calls.

    It cannot be kept if it is too large, if it was made during the capture of a CUDA graph (whose memory belongs to the
    graph), or if torch only traces shapes.
    """
    if type(made) is not Tensor or made.numel() > LARGEST:
        return False
    return not (made.is_cuda and torch.cuda.is_current_stream_capturing())


@once
def integers(values: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the N numbers of `values` as a tensor, [N] int64."""
    return torch.tensor(values, dtype=torch.int64, device=device)


@once
def counting(count: int, device: torch.device) -> Tensor:
    """Return the numbers 0 to count - 1, [count] int64."""
    return torch.arange(count, device=device)


@once
def identity(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the identity matrix, [size, size]."""
    return torch.eye(size, dtype=dtype, device=device)


@once
def ones(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a tensor of the given shape, filled with 1."""
    return torch.ones(shape, dtype=dtype, device=device)


@once
def number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the number `value` as a tensor without axes."""
    return torch.tensor(value, dtype=dtype, device=device)

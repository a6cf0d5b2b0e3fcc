"""Interleaved timing: the sides of a comparison take turns, so that a busy machine hits them alike."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Clock = Callable[[], float]


def compare(
    sides: tuple[Callable[[], object], ...], repeats: int, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """Sorted seconds of each side over `repeats` turns, after one unmeasured turn.

    With `time.process_time` what other processes take does not count; it knows nothing of subprocesses and GPUs.
    """
    turns = [[seconds(side, clock) for side in sides] for _ in range(repeats + 1)][1:]
    return [sorted(times) for times in zip(*turns, strict=True)]


def seconds(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def median(times: list[float]) -> float:
    return times[len(times) // 2]


def spread(times: list[float], unit: float = 1e3) -> str:
    """min / median / max, in milliseconds by default."""
    return " / ".join(f"{t * unit:8.2f}" for t in (times[0], median(times), times[-1]))


def both_ways(
    layer: Callable[[Tensor], Tensor], parameters: Sequence[Tensor], shape: tuple[int, ...]
) -> Callable[[], object]:
    """Forward, and backward to the parameters (as far as they are used) and the input, which has this shape."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator, requires_grad=True)
    upstream = torch.randn(shape, generator=generator)
    return lambda: torch.autograd.grad(layer(x), [*parameters, x], upstream, allow_unused=True)

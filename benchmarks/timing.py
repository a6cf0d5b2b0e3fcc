"""Interleaved timing: the sides of a comparison take turns, so that a busy machine hits them alike."""

import time
from collections.abc import Callable


def compare(sides: tuple[Callable[[], object], ...], repeats: int) -> list[list[float]]:
    """Sorted seconds of each side over `repeats` turns, after one unmeasured turn."""
    turns = [[seconds(side) for side in sides] for _ in range(repeats + 1)][1:]
    return [sorted(times) for times in zip(*turns, strict=True)]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(times: list[float]) -> float:
    return times[len(times) // 2]


def spread(times: list[float], unit: float = 1e3) -> str:
    """min / median / max, in milliseconds by default."""
    return " / ".join(f"{t * unit:8.2f}" for t in (times[0], median(times), times[-1]))

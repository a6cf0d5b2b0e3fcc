"""A pool takes packs and gives their results as they come, wherever they run."""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from mclab.workers.work import Pack, Progress, Result, Train, work


class Pool(Protocol):
    """Packs go in at any time, results come out in the order in which they are ready."""

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Hand in a pack. Of those that wait, a higher priority starts first, and an earlier one among equals."""

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Each pack with its result, until none is left; packs may be handed in meanwhile."""


class InProcess:
    """Packs run here, one after the other, in the order handed in: with one worker there is nothing to balance."""

    def __init__(self, device: str, train: Train | None = None, progress: Progress | None = None) -> None:
        self._device, self._train, self._progress = device, train, progress
        self._waiting: deque[Pack] = deque()

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Hand in a pack; the priority means nothing here."""
        self._waiting.append(pack)

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Run each pack, give its result."""
        while self._waiting:
            pack = self._waiting.popleft()
            yield pack, work(pack, self._device, self._train, self._progress)


def open_pool(
    device: str,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    train: Train | None = None,
    progress: Progress | None = None,
) -> AbstractContextManager[Pool]:
    """The pool that the options ask for: a cluster at `scheduler`, else `workers` local processes, else this process.

    `progress` works in this process alone. Raises `ConfigError` where no scheduler answers at the address.
    """
    if scheduler is None and workers == 1:
        return nullcontext(InProcess(device, train, progress))
    if scheduler is not None:
        from mclab.workers.cluster import remote

        return remote(scheduler, device, train)
    from mclab.workers.local import local

    return local(workers, device, train)


def worker_count(workers: int | str, device: str) -> int:
    """`auto` is the number of cores on CPU and one per GPU on CUDA. Raises `ValueError` below one."""
    if workers == "auto":
        from mclab.workers.local import cores, gpus

        return len(gpus(device)) if device.startswith("cuda") else cores()
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers: needs auto or a whole number from 1, got {workers!r}")
    return workers

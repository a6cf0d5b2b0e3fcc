"""A pool trains the packs that are submitted to it and returns their results when they are ready."""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Protocol

from mclab.config.options import AUTO, Keep, RunOptions
from mclab.workers.cores import cores
from mclab.workers.work import Pack, PackProgress, Result, Say, Train, work


class Pool(Protocol):
    """Accepts packs at any time, and returns results in the order in which they are ready."""

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Submit a pack. The waiting pack with the highest priority starts first; among equal ones, the earliest."""

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Yield each pack with its result until no pack is left; packs may be submitted meanwhile."""


class InProcess:
    """Runs packs in this process, one after the other, in the order of submission.

    Priorities are ignored, since with one worker there is nothing to balance.
    """

    def __init__(
        self,
        options: RunOptions,
        train: Train | None = None,
        progress: PackProgress | None = None,
        keep: Keep | None = None,
    ) -> None:
        self._options, self._train, self._progress, self._keep = options, train, progress, keep
        self._waiting: deque[Pack] = deque()

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Submit a pack; `priority` is ignored."""
        self._waiting.append(pack)

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Run each pack, and yield it with its result."""
        while self._waiting:
            pack = self._waiting.popleft()
            told = partial(self._progress, pack) if self._progress else None
            yield pack, work(pack, self._options, self._train, told, self._keep)


def open_pool(
    options: RunOptions,
    workers: int = 1,
    *,
    train: Train | None = None,
    progress: PackProgress | None = None,
    keep: Keep | None = None,
    say: Say | None = None,
) -> AbstractContextManager[Pool]:
    """Return the pool that the options ask for: the cluster of a scheduler, else `workers` local processes or this
    process.

    `keep` is passed to every training; on a cluster the workers must share its folder. `say` gets a warning for each
    costly setting of the cluster. Raises `ConfigError` if no scheduler answers, or if workers cannot train.
    """
    if options.scheduler is not None:
        from mclab.workers.cluster import remote

        return remote(options.scheduler, options, train, progress, keep, say)
    if workers == 1:
        return nullcontext(InProcess(options, train, progress, keep))
    from mclab.workers.local import local

    return local(workers, options, train, progress, keep)


def device_at(scheduler: str) -> str:
    """Return `cuda` or `cpu`, the device of the workers of the scheduler at the address `scheduler`.

    Raises `ConfigError` if no scheduler or no worker answers, or if only some workers have a GPU.
    """
    from mclab.workers.cluster import connected
    from mclab.workers.cluster_check import device_of

    with connected(scheduler) as client:
        return device_of(client, scheduler)


def worker_count(options: RunOptions) -> int:
    """Return the number of workers that the options ask for.

    `auto` means on CPU the number of cores divided by the threads per worker, on CUDA one worker per GPU, and with a
    scheduler the workers that it has now. Raises `ConfigError` for a GPU that does not exist, and for a scheduler that
    does not answer.
    """
    if options.workers != AUTO:
        return int(options.workers)
    if options.scheduler is not None:
        from mclab.workers.cluster import connected
        from mclab.workers.cluster_check import size_of

        with connected(options.scheduler) as client:
            return max(1, size_of(client))
    if not options.device.startswith("cuda"):
        return max(1, cores() // options.threads)
    from mclab.workers.local import gpus

    return len(gpus(options.device))

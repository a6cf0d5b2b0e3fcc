"""A pool takes packs and gives their results as they come, wherever they run."""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Protocol

from mclab.config.options import AUTO, Keep, RunOptions
from mclab.workers.cores import cores
from mclab.workers.work import Pack, PackProgress, Result, Say, Train, work


class Pool(Protocol):
    """Packs go in at any time, results come out in the order in which they are ready."""

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Hand in a pack. Of those that wait, a higher priority starts first, and an earlier one among equals."""

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Each pack with its result, until none is left; packs may be handed in meanwhile."""


class InProcess:
    """Packs run here, one after the other, in the order handed in: with one worker there is nothing to balance."""

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
        """Hand in a pack; the priority means nothing here."""
        self._waiting.append(pack)

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Run each pack, give its result."""
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
    """The pool that the options ask for: the scheduler's cluster, else `workers` local processes, else this process.

    `keep` goes to every training: on a cluster its folder must be one that the workers share. `say` hears what of the
    cluster costs something. Raises `ConfigError` where no scheduler answers at the address, or no worker can train.
    """
    if options.scheduler is not None:
        from mclab.workers.cluster import remote

        return remote(options.scheduler, options, train, progress, keep, say)
    if workers == 1:
        return nullcontext(InProcess(options, train, progress, keep))
    from mclab.workers.local import local

    return local(workers, options, train, progress, keep)


def device_at(scheduler: str) -> str:
    """The device that the workers of the scheduler at that address have: `cuda` or `cpu`. Raises `ConfigError`."""
    from mclab.workers.cluster import connected
    from mclab.workers.cluster_check import device_of

    with connected(scheduler) as client:
        return device_of(client, scheduler)


def worker_count(options: RunOptions) -> int:
    """`auto` is as many as the cores can give their threads to, one per GPU on CUDA; of a cluster, those it has by now.

    Raises `ConfigError` for a GPU that is not there or a scheduler that does not answer.
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

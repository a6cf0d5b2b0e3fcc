"""Packs on Dask: what goes in and out, and the way to a cluster that the user runs."""

# mypy: allow-untyped-calls
import logging
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

from distributed import Client, as_completed, get_worker
from distributed.scheduler import KilledWorker

from mclab.config.keep import Keep
from mclab.config.strict import ConfigError
from mclab.workers.pool import PackProgress
from mclab.workers.signals import interrupts_held
from mclab.workers.work import Failure, Pack, Result, Train, work

#: A level that nothing is logged at: a scheduler calls it critical when a client leaves before a worker's last word.
NEVER = logging.CRITICAL + 1
#: Seconds in which a scheduler must answer.
_PATIENCE = 10


class DaskPool:
    """Packs on a Dask cluster. Dask itself holds the queue: it is the one that knows its workers."""

    def __init__(
        self,
        client: Client,
        device: str,
        train: Train | None,
        progress: PackProgress | None = None,
        keep: Keep | None = None,
    ) -> None:
        self._client, self._device, self._train, self._progress, self._keep = client, device, train, progress, keep
        self._packs: dict[Any, Pack] = {}
        self._numbered: list[Pack] = []
        self._done = as_completed(loop=client.loop)
        self._topic = f"mclab-{uuid.uuid4()}" if progress else None
        if self._topic:
            client.subscribe_topic(self._topic, self._hear)

    def _hear(self, event: tuple[float, tuple[int, int, int]]) -> None:
        """In Dask's thread: which pack is at which step."""
        _, (number, step, steps) = event
        if self._progress is not None:
            self._progress(self._numbered[number], step, steps)

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Hand in a pack; of those that wait the one of the highest priority starts first."""
        told = partial(_tell, self._topic, len(self._numbered)) if self._topic else None
        self._numbered.append(pack)
        future = self._client.submit(
            work, pack, self._device, self._train, told, self._keep, pure=False, priority=priority
        )
        self._packs[future] = pack
        self._done.add(future)

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Each pack with its result, as they come. Raises `ConfigError` when the scheduler is lost."""
        while self._packs:
            future = next(self._done)
            with interrupts_held():  # a Ctrl-C that meets a future's finaliser is dropped by Python
                lost = future.status in ("lost", "pending")
                if lost:  # its worker died with the result: Dask runs it again
                    self._done.add(future)
                else:
                    result, pack = _result(future), self._packs.pop(future)
                    future.release()
                del future
            if not lost:
                yield pack, result


def _tell(topic: str, number: int, step: int, steps: int) -> None:
    """In a worker: tell the pool how far its pack of that number is."""
    get_worker().log_event(topic, (number, step, steps))


def _result(future: Any) -> Result:
    try:
        result: Result = future.result()
        return result
    except CancelledError as error:
        raise ConfigError("the scheduler is gone; what is stored stays, the same command runs the rest") from error
    except KilledWorker as error:
        times = error.allowed_failures + 1
        return Failure("failed", f"the worker process died {times} times on this pack (out of memory, or a crash)")
    except Exception as error:
        return Failure("failed", f"{type(error).__name__}: {' '.join(str(error).split())}")


@contextmanager
def remote(
    address: str, device: str, train: Train | None, progress: PackProgress | None = None, keep: Keep | None = None
) -> Iterator[DaskPool]:
    """The cluster whose scheduler listens at `address`. Raises `ConfigError` when none answers."""
    with quiet():
        try:
            client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"scheduler: no Dask scheduler answers at {address} ({reason})") from error
        try:
            yield DaskPool(client, device, train, progress, keep)
        finally:
            with interrupts_held():
                client.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Dask logs every death and every goodbye; what matters of them is in the results.

    Each of its loggers by itself, since some have levels and handlers of their own.
    """
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(NEVER)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)

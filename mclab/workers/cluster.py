"""Packs on Dask: what goes in and out, and the way to a cluster that the user runs."""

# mypy: allow-untyped-calls
import logging
import operator
import pickle
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client
from distributed.protocol.pickle import dumps
from distributed.scheduler import KilledWorker, NoValidWorkerError
from distributed.security import Security
from distributed.versions import VersionMismatchWarning

from mclab.config.options import Keep, RunOptions
from mclab.config.strict import ConfigError
from mclab.workers.cluster_check import RETRIES, cannot_import, check_cluster
from mclab.workers.dask_task import TAKEN, train_here
from mclab.workers.signals import interrupts_held
from mclab.workers.work import Failure, Pack, PackProgress, Result, Say, Train

#: A level that nothing is logged at: a scheduler logs as critical when a client leaves before a worker has answered.
NEVER = logging.CRITICAL + 1
#: Seconds in which a scheduler must answer, and in which it must take a goodbye.
_PATIENCE, _GOODBYE = 10, 2
#: Seconds without a result after which it is asked whether any worker is left.
_QUIET = 3.0
_ON = "what is stored stays, the same command runs the rest"


@dataclass
class _Sent:
    """A pack under way: how often a worker has taken it up, how often the scheduler has given it up."""

    pack: Pack
    priority: float
    future: Any = None
    taken: int = 0
    given_up: int = 0


class DaskPool:
    """Packs on a Dask cluster. Dask itself holds the queue: it is the one that knows its workers.

    A pack whose workers die is run again, twice. The scheduler counts a death against every pack that the worker held;
    here those count during which the pack had been taken up.
    """

    def __init__(
        self,
        client: Any,
        options: RunOptions,
        train: Train | None,
        progress: PackProgress | None = None,
        keep: Keep | None = None,
        say: Say | None = None,
    ) -> None:
        self._client, self._options, self._train, self._progress, self._keep = client, options, train, progress, keep
        self._say, self._alone = say, False
        self._sent: dict[int, _Sent] = {}
        self._number = 0
        self._ready: SimpleQueue[tuple[int, Result | BaseException]] = SimpleQueue()
        self._topic = f"mclab-{uuid.uuid4()}"
        client.subscribe_topic(self._topic, self._hear)

    def _hear(self, event: tuple[float, tuple[int, int, int]]) -> None:
        """In Dask's thread: which pack is at which step."""
        _, (number, step, steps) = event
        sent = self._sent.get(number)
        if sent is not None and step == TAKEN:
            sent.taken += 1
        elif sent is not None and self._progress is not None:
            self._progress(sent.pack, step, steps)

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Hand in a pack; of those that wait the one of the highest priority starts first."""
        self._number += 1
        self._sent[self._number] = _Sent(pack, priority)
        self._start(self._number)

    def _start(self, number: int) -> None:
        sent = self._sent[number]
        given = (sent.pack, number, self._topic, self._options, self._train, self._keep)
        # As bytes that only the task itself reads: a worker that cannot import mclab ends with whatever message it
        # cannot read, and the scheduler, which reads what is no bytes, can do without mclab.
        task, key = dumps(partial(train_here, *given)), f"mclab-{uuid.uuid4()}"
        graph = {key: (operator.call, (pickle.loads, task))}
        sent.future = self._client.get(graph, key, sync=False, priority=sent.priority)
        self._client.loop.add_callback(self._collect, number, sent.future)

    async def _collect(self, number: int, future: Any) -> None:
        """In Dask's thread: fetch a result when it is there, so that a worker that hangs with one holds up no other."""
        try:
            self._ready.put((number, await future))
        except BaseException as error:
            self._ready.put((number, error))

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Each pack with its result, as they come. Raises `ConfigError` when the scheduler or all workers are lost."""
        while self._sent:
            try:
                number, got = self._ready.get(timeout=_QUIET)
            except Empty:
                self._warn_if_no_worker()
                continue
            with interrupts_held():  # a Ctrl-C that meets a future's finaliser is dropped by Python
                self._sent[number].future.release()
                result = got if not isinstance(got, BaseException) else self._judge(number, got)
                if result is None:
                    self._start(number)
                    continue
                pack = self._sent.pop(number).pack
            yield pack, result

    def _judge(self, number: int, error: BaseException) -> Failure | None:
        """What an error that is not the training's own comes to; `None` for another try."""
        sent = self._sent[number]
        if isinstance(error, CancelledError):
            raise ConfigError(f"the scheduler is gone; {_ON}") from error
        if isinstance(error, NoValidWorkerError):
            raise ConfigError(f"no worker is left; {_ON}") from error
        if isinstance(error, ImportError | AttributeError):  # the training's own come as a `Failure`
            raise ConfigError(f"{cannot_import('a worker', error)}; {_ON}") from error
        if not isinstance(error, KilledWorker):
            return Failure("failed", f"{type(error).__name__}: {' '.join(str(error).split())}")
        sent.given_up += 1
        if max(sent.taken, sent.given_up) <= RETRIES:
            return None
        times, last = max(sent.taken, error.allowed_failures + 1), error.last_worker.address
        died = "out of memory, a crash, or no sign of life for longer than worker-ttl"
        return Failure("failed", f"the worker process died {times} times on this pack ({died}), last {last}")

    def _warn_if_no_worker(self) -> None:
        """Say it once when the last worker has gone: nothing will come until there is another."""
        if self._say is None:
            return
        with suppress(OSError, TimeoutError):
            alone = not self._client.sync(self._client.scheduler.ncores, callback_timeout=_QUIET)
            if alone and not self._alone:
                self._say(f"no worker is left; the packs wait for one, a Ctrl-C ends it ({_ON})")
            self._alone = alone


@contextmanager
def remote(
    address: str,
    options: RunOptions,
    train: Train | None,
    progress: PackProgress | None = None,
    keep: Keep | None = None,
    say: Say | None = None,
) -> Iterator[DaskPool]:
    """The cluster whose scheduler listens at `address`; `say` hears what of it costs something.

    Raises `ConfigError` when no scheduler answers, and for workers that cannot run mclab.
    """
    with connected(address) as client:
        check_cluster(client, address, say or (lambda line: None))
        yield DaskPool(client, options, train, progress, keep, say)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client, closed at the end even where the scheduler has gone. Raises `ConfigError` when no scheduler answers.

    To a `tls://` address it shows the certificates that Dask's configuration names.
    """
    if address.startswith("tls://"):
        _check_certificates()
    with quiet():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # in a table of many lines; ours is one
                client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"scheduler: no Dask scheduler answers at {address} ({reason})") from error
        try:
            yield client
        finally:
            with interrupts_held(), suppress(TimeoutError):
                client.close(timeout=_GOODBYE)


def _check_certificates() -> None:
    """Raises `ConfigError` where Dask's configuration names no certificates, or some that are none."""
    where = "distributed.comm.tls: ca-file, client.key and client.cert (docs/machines.md)"
    try:
        found = Security().get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:  # the operating system does not say which file
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"--scheduler: cannot read what Dask's configuration names under {where}: {reason}"
        ) from error
    if found is None:
        raise ConfigError(f"--scheduler: tls:// needs certificates, Dask's configuration names none: set {where}")


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

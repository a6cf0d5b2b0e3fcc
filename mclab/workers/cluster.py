"""Run packs on Dask: submit them, collect their results, and connect to a cluster of the user's."""

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

#: A log level above all others, so that nothing is logged. A scheduler logs a critical message if a client leaves
#: before a worker has answered.
NEVER = logging.CRITICAL + 1
#: The seconds in which a scheduler must answer, and in which a client must be able to close its connection.
_PATIENCE, _GOODBYE = 10, 2
#: The seconds without a result after which the scheduler is asked whether any worker is left.
_QUIET = 3.0
_ON = "all stored results are kept, and the same command runs the rest"


@dataclass
class _Sent:
    """A submitted pack: how often a worker has begun it (`taken`), and how often the scheduler has given it up."""

    pack: Pack
    priority: float
    future: Any = None
    taken: int = 0
    given_up: int = 0


class DaskPool:
    """Runs packs on a Dask cluster. The queue is in Dask, which knows its workers.

    A pack whose worker dies is run again, at most twice. The scheduler counts the death of a worker against every pack
    that was assigned to the worker. Here a death counts only if the worker had begun the pack.
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
        """Receive a worker's report on the progress of its pack. This runs in Dask's thread."""
        _, (number, step, steps) = event
        sent = self._sent.get(number)
        if sent is not None and step == TAKEN:
            sent.taken += 1
        elif sent is not None and self._progress is not None:
            self._progress(sent.pack, step, steps)

    def submit(self, pack: Pack, priority: float = 0.0) -> None:
        """Submit a pack. The waiting pack with the highest priority starts first."""
        self._number += 1
        self._sent[self._number] = _Sent(pack, priority)
        self._start(self._number)

    def _start(self, number: int) -> None:
        sent = self._sent[number]
        given = (sent.pack, number, self._topic, self._options, self._train, self._keep)
        # The arguments are sent as bytes, which only the task itself unpickles. Otherwise a worker without mclab would
        # fail at a message that it cannot unpickle, and the scheduler, which unpickles all messages, would need mclab
        # too.
        task, key = dumps(partial(train_here, *given)), f"mclab-{uuid.uuid4()}"
        graph = {key: (operator.call, (pickle.loads, task))}
        sent.future = self._client.get(graph, key, sync=False, priority=sent.priority)
        self._client.loop.add_callback(self._collect, number, sent.future)

    async def _collect(self, number: int, future: Any) -> None:
        """Fetch a result when it is ready, in Dask's thread, so that a worker that hangs does not delay others."""
        try:
            self._ready.put((number, await future))
        except BaseException as error:
            self._ready.put((number, error))

    def finished(self) -> Iterator[tuple[Pack, Result]]:
        """Yield each pack with its result, in the order in which results arrive.

        Raises `ConfigError` if the scheduler or all workers are lost.
        """
        while self._sent:
            try:
                number, got = self._ready.get(timeout=_QUIET)
            except Empty:
                self._warn_if_no_worker()
                continue
            with interrupts_held():  # Python loses a Ctrl-C that arrives in the finaliser of a future
                self._sent[number].future.release()
                result = got if not isinstance(got, BaseException) else self._judge(number, got)
                if result is None:
                    self._start(number)
                    continue
                pack = self._sent.pop(number).pack
            yield pack, result

    def _judge(self, number: int, error: BaseException) -> Failure | None:
        """Return the result for an error that did not come from training; `None` if the pack is to be tried again.

        Raises `ConfigError` for an error that ends the command.
        """
        sent = self._sent[number]
        if isinstance(error, CancelledError):
            raise ConfigError(f"the Dask scheduler has stopped or is unreachable; {_ON}") from error
        if isinstance(error, NoValidWorkerError):
            raise ConfigError(f"the Dask scheduler has no worker left; {_ON}") from error
        if isinstance(error, ImportError | AttributeError):  # such errors in training itself arrive as a `Failure`
            raise ConfigError(f"{cannot_import('a worker', error)}; {_ON}") from error
        if not isinstance(error, KilledWorker):
            return Failure("failed", f"{type(error).__name__}: {' '.join(str(error).split())}")
        sent.given_up += 1
        if max(sent.taken, sent.given_up) <= RETRIES:
            return None
        times, last = max(sent.taken, error.allowed_failures + 1), error.last_worker.address
        died = "out of memory, a crash, or no sign of life for longer than worker-ttl"
        return Failure(
            "failed",
            f"the worker process died {times} times while it trained this pack, last at {last}; "
            f"possible causes: {died}",
        )

    def _warn_if_no_worker(self) -> None:
        """Print one warning when the last worker is lost, since no result can arrive until there is another worker."""
        if self._say is None:
            return
        with suppress(OSError, TimeoutError):
            alone = not self._client.sync(self._client.scheduler.ncores, callback_timeout=_QUIET)
            if alone and not self._alone:
                self._say(f"no worker is left: the packs wait until one connects; Ctrl-C ends the command ({_ON})")
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
    """Yield a pool on the cluster whose scheduler listens at `address`.

    `say` gets a warning for each costly setting of the cluster. Raises `ConfigError` if no scheduler answers, and for
    workers that cannot run mclab.
    """
    with connected(address) as client:
        check_cluster(client, address, say or (lambda line: None))
        yield DaskPool(client, options, train, progress, keep, say)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a client of the scheduler at `address`, which is closed at the end even if the scheduler is lost.

    For a `tls://` address it uses the certificates that Dask's configuration names. Raises `ConfigError` if no
    scheduler answers.
    """
    if address.startswith("tls://"):
        _check_certificates()
    with quiet():
        try:
            with warnings.catch_warnings():
                # Dask would print a table; mclab warns in one line
                warnings.simplefilter("ignore", VersionMismatchWarning)
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
    """Raise `ConfigError` if Dask's configuration names no certificates, or files that are no certificates."""
    where = "distributed.comm.tls: ca-file, client.key and client.cert (docs/machines.md)"
    try:
        found = Security().get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:  # the error does not name the file
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"--scheduler: cannot read the files that Dask's configuration names under {where}: {reason}"
        ) from error
    if found is None:
        raise ConfigError(f"--scheduler: tls:// needs certificates, but Dask's configuration names none; set {where}")


@contextmanager
def quiet() -> Iterator[None]:
    """Switch off Dask's log messages within the block.

    Dask logs every death of a worker and every closed connection; the results say what matters of this. Each of its
    loggers is set separately, since some have their own levels and handlers.
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

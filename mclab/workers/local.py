"""Run packs in worker processes on this machine, with a Dask scheduler in this process.

Whoever can connect to a port of Dask can run code, and every user of the machine can connect to loopback. So every port
requires a key, which is made for this cluster and exists only in the memory of its processes. Dask's web pages are off.
"""

# mypy: allow-untyped-calls
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker
from distributed.security import Security

from mclab.config.options import Keep, RunOptions
from mclab.config.strict import ConfigError
from mclab.workers.cluster import NEVER, DaskPool, quiet
from mclab.workers.cluster_check import RETRIES, TTL
from mclab.workers.signals import interrupts_held
from mclab.workers.work import PackProgress, Train

_SETTINGS = {
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.scheduler.worker-ttl": f"{TTL}s",
    # A worker gets no pack in advance, only the one that it trains.
    "distributed.scheduler.worker-saturation": 1.0,
    # If all workers are dead and none starts again, an error is raised after this time.
    "distributed.scheduler.no-workers-timeout": "120s",
    # A worker that takes long to start again is not given up.
    "distributed.deploy.lost-worker-timeout": "1h",
    "distributed.scheduler.active-memory-manager.start": False,
    # The profiler would sample the training thread a hundred times a second.
    "distributed.worker.profile.enabled": False,
}


#: The most attempts to start a cluster, if a worker dies before it is connected.
_TRIES = 3
#: The files that this process needs, and those that it needs for each worker. With 2 to 6 workers, 17 and 13 were
#: counted. Storing and drawing need some more, and a worker that dies leaves some open for a while.
_OPEN, _OPEN_EACH = 40, 15
_ELSE = "--workers 1 needs no other process"


class _NoPages:
    """Keeps scheduler and workers from opening a port for web pages, since these have no password."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing, instead of starting Dask's web server."""


class _Worker(_NoPages, Worker):
    pass


class _Scheduler(_NoPages, Scheduler):
    """A scheduler that keeps all waiting packs and sends a worker only the pack that it trains.

    Dask counts the death of a worker against every pack that was assigned to the worker, even if it had not begun the
    pack.
    """

    def is_rootish(self, ts: object) -> bool:
        """Return `True`: with this, Dask lets a task wait at the scheduler until a worker is free."""
        return True


@contextmanager
def local(
    workers: int,
    options: RunOptions,
    train: Train | None,
    progress: PackProgress | None = None,
    keep: Keep | None = None,
) -> Iterator[DaskPool]:
    """Yield a pool of `workers` processes on this machine, each with `options.threads` threads.

    On CUDA each process sees one GPU. The processes import mclab but never the caller's script, and they end with this
    process, however it ends. Raises `ConfigError` if they do not start, or if a worker dies during the start three
    times.
    """
    _check_files(workers)
    with ExitStack() as stack:
        for context in (quiet(), dask.config.set(_SETTINGS), _environment_kept(), _script_hidden()):
            stack.enter_context(context)
        # If Python started the tracker later, the workers would get Ctrl-C, because starting it unblocks the signal.
        resource_tracker.ensure_running()
        cluster = _started(workers, options, stack)
        with interrupts_held():
            client = stack.enter_context(Client(cluster, set_as_default=False))
        seen = "cuda" if options.device.startswith("cuda") else options.device
        yield DaskPool(client, replace(options, device=seen), train, progress, keep)


def _check_files(workers: int) -> None:
    """Raise the limit of open files to what `workers` workers need. Raises `ConfigError` if this is not allowed.

    With too low a limit, Dask would log refused connections without end.
    """
    needed, (soft, hard) = _OPEN + _OPEN_EACH * workers, resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise ConfigError(
                f"--workers: {workers} processes need {needed} open files, but only {hard} are allowed here; "
                f"raise the limit (ulimit -n {needed}) or use fewer workers ({_ELSE})"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _started(workers: int, options: RunOptions, stack: ExitStack) -> SpecCluster:
    """Start a cluster, which `stack` will stop. If a worker dies before it is connected, try again, at most twice."""
    for left in reversed(range(_TRIES)):
        try:
            with interrupts_held():
                cluster = _start(workers, options)
                stack.callback(_stop, cluster)
            return cluster
        except Exception as error:  # raised by Dask or the operating system, often inside a RuntimeError
            if not left:
                reason = " ".join(str(_root(error)).split()) or type(_root(error)).__name__
                raise ConfigError(
                    f"--workers: {workers} processes could not be started in {_TRIES} attempts "
                    f"({reason}): perhaps they "
                    f"are killed or memory is short; all stored results are kept; {_ELSE}"
                ) from error
    raise AssertionError


def _root(error: BaseException) -> BaseException:
    """Return the error at the start of a chain of causes."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _start(workers: int, options: RunOptions) -> SpecCluster:
    """Start a cluster as `LocalCluster` does, but with a separate environment for each worker, and with a key."""
    here = {"host": "127.0.0.1", "protocol": "tls", "security": Security.temporary(), "dashboard": False}
    worker = {**here, "nthreads": 1, "memory_limit": 0, "silence_logs": NEVER, "worker_class": _Worker}
    specs = {
        number: {"cls": Nanny, "options": {**worker, "env": env}}
        for number, env in enumerate(_environments(workers, options))
    }
    scheduler = {"cls": _Scheduler, "options": {**here, "port": 0}}
    return SpecCluster(workers=specs, scheduler=scheduler, security=here["security"], silence_logs=NEVER, name="mclab")


def _environments(workers: int, options: RunOptions) -> list[dict[str, str]]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads))
    if not options.device.startswith("cuda"):
        return [threads] * workers
    cards = gpus(options.device)
    return [{**threads, "CUDA_VISIBLE_DEVICES": cards[number % len(cards)]} for number in range(workers)]


def gpus(device: str) -> list[str]:
    """Return the GPUs that `device` means: `cuda` all visible ones, `cuda:N` one of these.

    They are named as in CUDA_VISIBLE_DEVICES. Raises `ConfigError` for a GPU that does not exist.
    """
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        import torch

        listed = ",".join(str(number) for number in range(torch.cuda.device_count()))
    cards = [card.strip() for card in listed.split(",") if card.strip()]
    number = int(device.partition(":")[2] or 0)
    if number >= len(cards):
        raise ConfigError(f"device: there is no {device}, this process sees {len(cards)} GPUs; give cpu")
    return [cards[number]] if ":" in device else cards


def _stop(cluster: SpecCluster) -> None:
    with interrupts_held():
        cluster.sync(_kill, cluster)
        cluster.close()


async def _kill(cluster: SpecCluster) -> None:
    """End the workers at once, since no one waits for a pack that is still training."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()
        if nanny.process is not None and nanny.process.process is not None:
            await nanny.process.process.kill()


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore this process's environment at the end, since Dask changes it when it starts workers."""
    names = [*dask.config.get("distributed.nanny.pre-spawn-environ"), "PYTHONHASHSEED", "__DASK_PARENT_PID"]
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Within the block, keep spawned processes from importing the caller's script.

    They would import it again, which starts a second grid if the script has no `if __name__ == "__main__"`.
    """
    main = sys.modules["__main__"]
    spec, file = main.__spec__, main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file

"""Packs in worker processes on this machine, under a Dask scheduler in this process."""

# mypy: allow-untyped-calls
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker

import dask
import dask.system
from distributed import Client, Nanny, Scheduler, SpecCluster

from mclab.config.keep import Keep
from mclab.config.options import RunOptions
from mclab.config.strict import ConfigError
from mclab.workers.cluster import NEVER, DaskPool, quiet
from mclab.workers.signals import interrupts_held
from mclab.workers.survey import RETRIES, TTL
from mclab.workers.work import PackProgress, Train

_SETTINGS = {
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.scheduler.worker-ttl": f"{TTL}s",
    # A worker holds the pack that it trains and no other.
    "distributed.scheduler.worker-saturation": 1.0,
    # Every worker dead and none restarting: an error after this, not a wait for ever.
    "distributed.scheduler.no-workers-timeout": "120s",
    # A worker that takes long to restart is not given up.
    "distributed.deploy.lost-worker-timeout": "1h",
    "distributed.scheduler.active-memory-manager.start": False,
    # Samples the training thread a hundred times a second.
    "distributed.worker.profile.enabled": False,
}


class _Scheduler(Scheduler):
    """Blames a worker's death on every pack that the worker held, run or not: so lets the others wait with itself."""

    def is_rootish(self, ts: object) -> bool:
        """Dask's word for a task that waits at the scheduler until a worker is free."""
        return True


@contextmanager
def local(
    workers: int,
    options: RunOptions,
    train: Train | None,
    progress: PackProgress | None = None,
    keep: Keep | None = None,
) -> Iterator[DaskPool]:
    """So many processes on this machine, each with its threads and, on CUDA, with one GPU to see.

    They import mclab, never the caller's script, and end with this process however it ends.
    """
    with ExitStack() as stack:
        for context in (quiet(), dask.config.set(_SETTINGS), _environment_kept(), _script_hidden()):
            stack.enter_context(context)
        # Started later it would let Ctrl-C through to the workers: it unblocks the signal behind itself.
        resource_tracker.ensure_running()
        with interrupts_held():
            cluster = _start(workers, options)
            stack.callback(_stop, cluster)
            client = stack.enter_context(Client(cluster, set_as_default=False))
        seen = "cuda" if options.device.startswith("cuda") else options.device
        yield DaskPool(client, replace(options, device=seen), train, progress, keep)


def _start(workers: int, options: RunOptions) -> SpecCluster:
    """What `LocalCluster` builds, but with an environment of its own for each worker."""
    here = {"host": "127.0.0.1", "dashboard": False}
    worker = {**here, "nthreads": 1, "memory_limit": 0, "silence_logs": NEVER}
    specs = {
        number: {"cls": Nanny, "options": {**worker, "env": env}}
        for number, env in enumerate(_environments(workers, options))
    }
    scheduler = {"cls": _Scheduler, "options": {**here, "port": 0, "dashboard_address": "127.0.0.1:0"}}
    return SpecCluster(workers=specs, scheduler=scheduler, silence_logs=NEVER, name="mclab")


def _environments(workers: int, options: RunOptions) -> list[dict[str, str]]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads))
    if not options.device.startswith("cuda"):
        return [threads] * workers
    cards = gpus(options.device)
    return [{**threads, "CUDA_VISIBLE_DEVICES": cards[number % len(cards)]} for number in range(workers)]


def gpus(device: str) -> list[str]:
    """The GPUs that `cuda` (all that are visible) or `cuda:N` stands for, as CUDA_VISIBLE_DEVICES names them."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        import torch

        listed = ",".join(str(number) for number in range(torch.cuda.device_count()))
    cards = [card.strip() for card in listed.split(",") if card.strip()]
    number = int(device.partition(":")[2] or 0)
    if number >= len(cards):
        raise ConfigError(f"device: {device} is not there, this process sees {len(cards)} GPUs; take cpu")
    return [cards[number]] if ":" in device else cards


def cores() -> int:
    """The cores that this process may use, control groups and affinity counted."""
    return int(dask.system.cpu_count())


def _stop(cluster: SpecCluster) -> None:
    with interrupts_held():
        cluster.sync(_kill, cluster)
        cluster.close()


async def _kill(cluster: SpecCluster) -> None:
    """End the workers at once: whose pack they still train, nobody takes its result."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()
        if nanny.process is not None and nanny.process.process is not None:
            await nanny.process.process.kill()


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Dask starts its workers' environment in this process's own; put that back at the end."""
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
    """A spawned process imports its parent's script again, which starts a grid if nothing guards it: let it not."""
    main = sys.modules["__main__"]
    spec, file = main.__spec__, main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file

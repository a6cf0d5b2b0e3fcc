"""Check a cluster of the user's when connecting to it: the settings of its scheduler, the versions of its workers."""

# mypy: allow-untyped-calls
import asyncio
import ipaddress
import math
import platform
import re
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

import dask
from dask.utils import parse_timedelta
from distributed import Client

import mclab
from mclab.config.ids import SCIENCE
from mclab.config.strict import ConfigError
from mclab.config.versions import moved_parts
from mclab.workers.work import Say

#: How often a pack is run again after its worker died; seconds after which a worker that does not answer is given up.
RETRIES, TTL = 2, 30
#: The seconds in which a worker must answer; otherwise the scheduler's worker-ttl decides. The first import of torch
#: from a network file system is slow.
_PATIENCE = 30.0
_GUIDE = "see docs/machines.md"

#: Errors that mean that a worker does not answer, or was lost meanwhile (`CommClosedError` is an `OSError`).
_UNHEARD = (TimeoutError, OSError)

Facts = dict[str, Any]


def check_cluster(client: Client, address: str, say: Say) -> None:
    """Warn, one line each, about settings and workers of the scheduler at `address` that cost time or safety.

    Raises `ConfigError` for workers that cannot import mclab, or whose formulas have other versions.
    """
    threads = client.nthreads()
    for line in (*_open(address), *_settings(client), *_threads(threads)):
        say(f"warning: {line}")
    if not threads:
        say(f"warning: no worker is connected to {address} yet; the packs wait until one connects")
        return
    found = client.sync(_ask, client, tuple(threads), False)
    _refuse(found, len(threads))
    for line in (*_silent(found), *_versions(found)):
        say(f"warning: {line}")


def device_of(client: Client, address: str) -> str:
    """Return `cuda` if every worker of the scheduler at `address` sees a GPU, `cpu` if no worker does.

    Raises `ConfigError` if only some workers see one, if no worker answers, and for workers that cannot import mclab.
    """
    threads = client.nthreads()
    found = client.sync(_ask, client, tuple(threads), True)
    _refuse(found, len(threads))
    seen = [facts["gpus"] > 0 for facts in found.values() if isinstance(facts, dict)]
    if not seen:
        raise ConfigError(f"--device: no worker at {address} has told yet whether it has a GPU; give cuda or cpu")
    if any(seen) and not all(seen):
        raise ConfigError(f"--device: {sum(seen)} of {len(seen)} workers at {address} have a GPU; give cuda or cpu")
    return "cuda" if any(seen) else "cpu"


def size_of(client: Client) -> int:
    """Return the number of workers of the client's scheduler."""
    return len(client.nthreads())


async def facts(gpus: bool) -> Facts:
    """Return the host and the versions of the worker that runs this; with `gpus` also its number of GPUs.

    Counting GPUs imports torch. The work is done in a thread, so that the worker's heartbeat continues.
    """
    return await asyncio.to_thread(_facts, gpus)


def _facts(gpus: bool) -> Facts:
    found: Facts = {
        "host": socket.gethostname(),
        "mclab": mclab.__version__,
        "science": _science(),
        "torch": _version("torch"),
        "Python": platform.python_version(),
    }
    if gpus:
        import torch

        found["gpus"] = torch.cuda.device_count()
    return found


def _science() -> str:
    """Return the versions of formulas in words: that of the ids, then those of parts not at their first version."""
    return ", ".join([f"ids {SCIENCE}", *(f"{part} {version}" for part, version in moved_parts().items())])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _ask(client: Client, workers: tuple[str, ...], gpus: bool) -> dict[str, Facts | Exception]:
    """Return {worker: its facts, or an exception}; the exception is `TimeoutError` if the worker does not answer."""

    async def ask(worker: str) -> Facts | Exception:
        try:
            asked = client.run(facts, gpus, workers=[worker], on_error="return")
            got: Facts | Exception = (await asyncio.wait_for(asked, _PATIENCE))[worker]
            return got
        except Exception as error:
            return error

    return dict(zip(workers, await asyncio.gather(*map(ask, workers)), strict=True))


def _refuse(found: Mapping[str, Facts | Exception], workers: int) -> None:
    unable = {at: got for at, got in found.items() if isinstance(got, Exception) and not isinstance(got, _UNHEARD)}
    if unable:
        at, error = next(iter(unable.items()))
        raise ConfigError(f"{len(unable)} of {workers} workers cannot import mclab: {cannot_import(at, error)}")
    for at, got in found.items():
        if isinstance(got, dict) and got["torch"] is None:
            raise ConfigError(f"the worker {at} has no torch; install mclab with its dependencies there")
        if isinstance(got, dict) and got["science"] != _science():
            raise ConfigError(
                f"the worker {at} has mclab {got['mclab']} with formulas of other versions ({got['science']}; here "
                f"{_science()}), so its results would differ; install the same version of mclab there"
            )


def cannot_import(worker: str, error: BaseException) -> str:
    """Return one line that says why a worker cannot run a pack."""
    reason = " ".join(str(error).split())
    return f"{worker} reports {reason!r}; install mclab {mclab.__version__} in the environment in which it is started"


def _open(address: str) -> Iterator[str]:
    """Yield a warning if everyone on a network can use the scheduler: without TLS, Dask asks for no credentials."""
    if re.match(r"(tcp|ws)://", address) and not _loopback(address):
        yield (
            f"the scheduler at {address} asks for no password, so anyone who reaches it can run code as "
            f"you; start it with TLS ({_GUIDE})"
        )


def _loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    with suppress(OSError, ValueError):  # only Dask can resolve this name
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
        return all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)
    return False


def _silent(found: Mapping[str, Facts | Exception]) -> Iterator[str]:
    for at, got in found.items():
        if isinstance(got, Exception):
            yield f"the worker {at} does not answer; other workers train its packs as soon as the scheduler gives it up"


def _versions(found: Mapping[str, Facts | Exception]) -> Iterator[str]:
    """Yield a warning for each version that differs on some workers.

    Records store versions, and tables say if they are mixed.
    """
    here, told = _facts(False), [got for got in found.values() if isinstance(got, dict)]
    for name in ("mclab", "torch", "Python"):
        others = Counter(got[name] for got in told if got[name] != here[name])
        hosts = sorted({got["host"] for got in told if got[name] != here[name]})
        if others:
            counted = ", ".join(f"{value} on {n} of {len(told)} workers" for value, n in sorted(others.items()))
            more = f" and {len(hosts) - 3} more hosts" * (len(hosts) > 3)
            yield (
                f"the version of {name} is {counted} ({', '.join(hosts[:3])}{more}) but {here[name]} "
                "here; results may differ"
            )


def _threads(threads: Mapping[str, int]) -> Iterator[str]:
    several = [n for n in threads.values() if n > 1]
    if several:
        yield (
            f"{len(several)} of {len(threads)} workers have up to {max(several)} threads but train only one pack at a "
            f"time; start them with --nthreads 1, one worker for each core or GPU"
        )


def _settings(client: Client) -> Iterator[str]:
    """Yield a warning for each setting of the scheduler that is worse than that of mclab's own scheduler."""
    ttl = _seconds(_setting(client, "worker-ttl"))
    if ttl is None:
        cost = "a worker that hangs keeps its pack for ever"
        yield _asked("worker-ttl", "off", f"{TTL}s", cost)
    elif ttl > TTL:
        yield _asked("worker-ttl", f"{ttl:g}s", f"{TTL}s", f"a worker that hangs keeps its pack for {ttl:g} s or more")
    allowed = _setting(client, "allowed-failures")
    if isinstance(allowed, int) and allowed > RETRIES:
        cost = f"a pack that kills its worker can kill {allowed + 1} workers before it counts as failed"
        yield _asked("allowed-failures", str(allowed), str(RETRIES), cost)
    saturation = float(_setting(client, "worker-saturation") or 1)
    if saturation > 1:
        told = "inf" if math.isinf(saturation) else f"{saturation:g}"
        cost = "packs may wait for a busy worker while another one is free, and start again when the busy one dies"
        yield _asked("worker-saturation", told, "1.0", cost)


def _asked(name: str, value: str, wanted: str, cost: str) -> str:
    variable = f"DASK_DISTRIBUTED__SCHEDULER__{name.upper().replace('-', '_')}"
    return (
        f"the scheduler's setting {name} is {value}, so {cost}; start the scheduler with {variable}={wanted} ({_GUIDE})"
    )


def _setting(client: Client, name: str) -> Any:
    """Return a setting of the scheduler's process.

    Only a function of Dask is used, since mclab may be missing there.
    """
    return client.run_on_scheduler(dask.config.get, f"distributed.scheduler.{name}", None)


def _seconds(value: Any) -> float | None:
    return None if value is None else float(parse_timedelta(value))

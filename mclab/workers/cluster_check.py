"""What a cluster that the user runs is like: its scheduler's settings, its workers' versions. Asked when connecting."""

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

#: Deaths of a worker that a pack survives, and seconds after which a silent worker is given up.
RETRIES, TTL = 2, 30
#: A worker that has not answered after so many seconds is left to the scheduler's worker-ttl. The first import of
#: torch from a network file system is slow.
_PATIENCE = 30.0
_GUIDE = "see docs/machines.md"

#: What a worker that does not answer, or goes meanwhile, comes to (`CommClosedError` is an `OSError`).
_UNHEARD = (TimeoutError, OSError)

Facts = dict[str, Any]


def check_cluster(client: Client, address: str, say: Say) -> None:
    """Say what of the scheduler at `address` and its workers costs something, a line each.

    Raises `ConfigError` for workers that cannot import mclab or that follow another version of its science.
    """
    threads = client.nthreads()
    for line in (*_open(address), *_settings(client), *_threads(threads)):
        say(f"warning: {line}")
    if not threads:
        say(f"warning: no worker is connected to {address} yet; the packs wait for one")
        return
    found = client.sync(_ask, client, tuple(threads), False)
    _refuse(found, len(threads))
    for line in (*_silent(found), *_versions(found)):
        say(f"warning: {line}")


def device_of(client: Client, address: str) -> str:
    """`cuda` where every worker of the scheduler at `address` sees a GPU, `cpu` where none does.

    Raises `ConfigError` where some do or there is none to ask, and for workers that cannot import mclab.
    """
    threads = client.nthreads()
    found = client.sync(_ask, client, tuple(threads), True)
    _refuse(found, len(threads))
    seen = [facts["gpus"] > 0 for facts in found.values() if isinstance(facts, dict)]
    if not seen:
        raise ConfigError(f"--device: no worker at {address} can be asked yet whether it has a GPU: say cuda or cpu")
    if any(seen) and not all(seen):
        raise ConfigError(f"--device: {sum(seen)} of {len(seen)} workers at {address} see a GPU: say cuda or cpu")
    return "cuda" if any(seen) else "cpu"


def size_of(client: Client) -> int:
    """The workers of its scheduler."""
    return len(client.nthreads())


async def facts(gpus: bool) -> Facts:
    """What a worker is, found out in a thread, so that its heartbeat continues. `gpus` imports torch."""
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
    """The versions of all formulas: ids, then the parts that are not at their first."""
    return ", ".join([f"ids {SCIENCE}", *(f"{part} {version}" for part, version in moved_parts().items())])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _ask(client: Client, workers: tuple[str, ...], gpus: bool) -> dict[str, Facts | Exception]:
    """Each worker's facts, or why there are none; `TimeoutError` for one that does not answer."""

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
            raise ConfigError(f"the worker {at} has no torch: install mclab with its dependencies there")
        if isinstance(got, dict) and got["science"] != _science():
            raise ConfigError(
                f"the worker {at} has mclab {got['mclab']} with other versions of formulas, {got['science']}, here "
                f"{_science()}: its results would be others; install the same version there"
            )


def cannot_import(worker: str, error: BaseException) -> str:
    """Why a worker cannot run a pack, in a line."""
    reason = " ".join(str(error).split())
    return f"{worker} says {reason!r}; install mclab {mclab.__version__} in the environment that it is started from"


def _open(address: str) -> Iterator[str]:
    """Whether everyone on a network may use the scheduler: Dask asks for no password, without TLS for nothing."""
    if re.match(r"(tcp|ws)://", address) and not _loopback(address):
        yield f"{address} has no password: whoever reaches it can run code as you; start it with TLS ({_GUIDE})"


def _loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    with suppress(OSError, ValueError):  # a name that is known to Dask alone
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
        return all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)
    return False


def _silent(found: Mapping[str, Facts | Exception]) -> Iterator[str]:
    for at, got in found.items():
        if isinstance(got, Exception):
            yield f"the worker {at} does not answer; what it holds is run elsewhere once the scheduler gives it up"


def _versions(found: Mapping[str, Facts | Exception]) -> Iterator[str]:
    """Versions of workers that differ from those here: records keep them, tables name what is mixed."""
    here, told = _facts(False), [got for got in found.values() if isinstance(got, dict)]
    for name in ("mclab", "torch", "Python"):
        others = Counter(got[name] for got in told if got[name] != here[name])
        hosts = sorted({got["host"] for got in told if got[name] != here[name]})
        if others:
            counted = ", ".join(f"{value} on {n} of {len(told)} workers" for value, n in sorted(others.items()))
            more = f" and {len(hosts) - 3} more hosts" * (len(hosts) > 3)
            yield f"{name} {counted} ({', '.join(hosts[:3])}{more}), {here[name]} here: results may not be the same"


def _threads(threads: Mapping[str, int]) -> Iterator[str]:
    several = [n for n in threads.values() if n > 1]
    if several:
        yield (
            f"{len(several)} of {len(threads)} workers have up to {max(several)} threads and train one pack at a time "
            f"all the same: start them with --nthreads 1, one for each core or GPU"
        )


def _settings(client: Client) -> Iterator[str]:
    """What the scheduler's settings cost where they are not those that mclab sets for its own."""
    ttl = _seconds(_setting(client, "worker-ttl"))
    if ttl is None:
        cost = "a worker that hangs holds its pack for ever"
        yield _asked("worker-ttl", "off", f"{TTL}s", cost)
    elif ttl > TTL:
        yield _asked("worker-ttl", f"{ttl:g}s", f"{TTL}s", f"a worker that hangs holds its pack for {ttl:g} s or more")
    allowed = _setting(client, "allowed-failures")
    if isinstance(allowed, int) and allowed > RETRIES:
        cost = f"a pack that kills its worker kills {allowed + 1} before it counts as failed"
        yield _asked("allowed-failures", str(allowed), str(RETRIES), cost)
    saturation = float(_setting(client, "worker-saturation") or 1)
    if saturation > 1:
        told = "inf" if math.isinf(saturation) else f"{saturation:g}"
        cost = "packs wait for a busy worker, and start again when it dies, while another may be free"
        yield _asked("worker-saturation", told, "1.0", cost)


def _asked(name: str, value: str, wanted: str, cost: str) -> str:
    variable = f"DASK_DISTRIBUTED__SCHEDULER__{name.upper().replace('-', '_')}"
    return f"the scheduler's {name} is {value}: {cost}; start it with {variable}={wanted} ({_GUIDE})"


def _setting(client: Client, name: str) -> Any:
    """As the scheduler's process has it. Told by a function of Dask's, since mclab need not be installed there."""
    return client.run_on_scheduler(dask.config.get, f"distributed.scheduler.{name}", None)


def _seconds(value: Any) -> float | None:
    return None if value is None else float(parse_timedelta(value))

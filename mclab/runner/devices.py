"""The device that a command's options mean, whether it or the cluster is there, and what has no kernel on it."""

import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace

from mclab.config.error import ConfigError
from mclab.config.options import AUTO, RunOptions
from mclab.config.run import RunConfig
from mclab.kernels.dispatch import choices
from mclab.workers import device_at


def resolved(options: RunOptions) -> RunOptions:
    """The options with a device in place of `auto`: CUDA where this machine, or every worker of the scheduler, has it.

    Raises `ConfigError` for a device that this machine lacks and a scheduler where nothing listens.
    """
    check_scheduler(options.scheduler)
    if options.scheduler is None:
        return replace(options, device=_local(options.device))
    return replace(options, device=device_at(options.scheduler) if options.device == AUTO else options.device)


def here(options: RunOptions) -> str:
    """The device for what this process itself tries out: with a scheduler the workers' may not be on this machine."""
    return options.device if options.scheduler is None else _local(AUTO)


def _local(name: str) -> str:
    import torch

    count = torch.cuda.device_count()
    if name == AUTO:
        return "cuda" if count else "cpu"
    if name != "cpu" and int(name.partition(":")[2] or 0) >= count:
        raise ConfigError(f"--device: no {name} here ({count} CUDA devices seen); take --device cpu")
    return name


def check_scheduler(address: str | None) -> None:
    """Raises `ConfigError` at once where nothing listens, before the run folder is touched."""
    found = re.fullmatch(r"(?:tcp|tls)://\[?([^/]+?)\]?:(\d+)/?", address or "")
    if found is None:  # another protocol of Dask's: it finds out for itself
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--scheduler: nothing answers at {address} ({getattr(error, 'strerror', None) or error})"
        ) from error


def unmet(runs: Iterable[RunConfig], options: RunOptions) -> Iterator[str]:
    """A line for each rule of these runs that no Triton kernel computes although one was asked for."""
    if options.kernels != "triton":
        return
    found = {
        f"--kernels triton: {rule} is computed by torch's forms: {choice.why_not}": None
        for run in runs
        for rule, choice in choices(run, options.device, options.kernels).items()
        if choice.form != "triton"
    }
    yield from found

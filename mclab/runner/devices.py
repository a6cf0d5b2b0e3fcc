"""Find the device that the options mean, check that it or the cluster exists, and list rules without Triton kernels."""

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
    """Return the options with an actual device instead of `auto`: CUDA if it exists, else the CPU.

    With a scheduler the device is that of its workers, otherwise that of this machine. Raises `ConfigError` for a
    device that this machine does not have, and for a scheduler that does not answer.
    """
    check_scheduler(options.scheduler)
    if options.scheduler is None:
        return replace(options, device=_local(options.device))
    return replace(options, device=device_at(options.scheduler) if options.device == AUTO else options.device)


def here(options: RunOptions) -> str:
    """Return the device for checks in this process.

    With a scheduler, the workers may have another device.
    """
    return options.device if options.scheduler is None else _local(AUTO)


def _local(name: str) -> str:
    import torch

    count = torch.cuda.device_count()
    if name == AUTO:
        return "cuda" if count else "cpu"
    if name != "cpu" and int(name.partition(":")[2] or 0) >= count:
        raise ConfigError(f"--device: this machine has no {name} (it has {count} CUDA devices); give --device cpu")
    return name


def check_scheduler(address: str | None) -> None:
    """Raise `ConfigError` if no program listens at `address`, before the run folder is touched."""
    found = re.fullmatch(r"(?:tcp|tls)://\[?([^/]+?)\]?:(\d+)/?", address or "")
    if found is None:  # there is no address, or another protocol of Dask, which reports errors itself
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"--scheduler: no program answers at {address} ({getattr(error, 'strerror', None) or error})"
        ) from error


def unmet(runs: Iterable[RunConfig], options: RunOptions) -> Iterator[str]:
    """With `--kernels triton`, yield a line for each rule of `runs` that has no Triton kernel, with the reason."""
    if options.kernels != "triton":
        return
    found = {
        f"--kernels triton: {rule} is computed with torch instead, because {choice.why_not}": None
        for run in runs
        for rule, choice in choices(run, options.device, options.kernels).items()
        if choice.form != "triton"
    }
    yield from found

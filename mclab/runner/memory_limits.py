"""Check whether runs fit into memory: how much the largest run takes, how much this machine has, and what would fit."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mclab.config.model import MemoryMixer
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.runner.memory import PROCESS, Memory, memory

#: A run whose parameters take more bytes than this is refused, since no machine has so much memory.
NOWHERE = 2**40
#: A run is refused if the estimate is more than this many times the machine's memory, since the estimate may be wrong.
MARGIN = 3
#: A file that exists if NVIDIA's driver is loaded.
_DRIVER = Path("/dev/nvidiactl")


class Machine(NamedTuple):
    """The memory of this machine in bytes:

    `free` and `whole`. In a container with a limit, they are those of the limit.
    """

    free: int
    whole: int


class Need(NamedTuple):
    """The memory that a cell needs: its name, one of its runs, and the memory of `replicas` runs in one pack."""

    name: str
    run: RunConfig
    memory: Memory
    replicas: int

    @property
    def process(self) -> int:
        """The bytes of a process that trains the pack on a CPU."""
        return self.memory.total + PROCESS


def machine() -> Machine | None:
    """Return the memory of this machine; `None` where the system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free, whole = (int(lines[key].split()[0]) * 1024 for key in ("MemAvailable", "MemTotal"))
    except (OSError, ValueError, KeyError):
        return None
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        free, whole = min(free, limit - used), min(whole, limit)
    except (OSError, ValueError):  # there is no container, or it has no limit
        pass
    return Machine(free, whole)


def trains_here(device: str, scheduler: str | None) -> bool:
    """Return whether runs train on this machine's CPU and so in its memory, as far as is known without torch."""
    return scheduler is None and (device == "cpu" or (device == "auto" and not _DRIVER.exists()))


def needs(runs: Iterable[tuple[str, RunConfig]], replicas: int = 1) -> list[Need]:
    """Return the need of each cell for `replicas` runs in a pack, the largest first.

    `runs` has (cell name, run) pairs.
    """
    found = [Need(name, run, memory(run, replicas), replicas) for name, run in runs]
    return sorted(found, key=lambda need: -need.memory.total)


def memory_text(need: Need, processes: int) -> str:
    """Return one line that says how much memory a process takes, and for what."""
    parts = zip(("parameters and optimiser", "activations", "logits", "sequences"), need.memory, strict=True)
    of = ", ".join(f"{name} {bytes_text(number)}" for name, number in parts if number > need.process // 100)
    several = f", {bytes_text(processes * need.process)} for all {processes} processes" * (processes > 1)
    return f"roughly {bytes_text(need.process)} of memory for each process{several} ({of or 'Python and torch'})"


def memory_warnings(found: Sequence[Need], processes: int, here: Machine | None, noun: str = "cells") -> Iterator[str]:
    """Yield at most one line: a warning if some of `found` may not fit into the free memory of the machine `here`."""
    if here is None:
        return
    large = [need for need in found if need.process * processes > here.free]
    if not large:
        return
    need, room = large[0], here.free // processes
    several = f", in {processes} processes at the same time" if processes > 1 else ""
    yield (
        f"{len(large)} of {len(found)} {noun} may not fit into memory: {_largest(need)}{several}, "
        f"but only {bytes_text(here.free)} of {bytes_text(here.whole)} are free; "
        f"take {_fewer(need, processes, here)}{_fix(need, room)}"
    )


def _fewer(need: Need, processes: int, here: Machine) -> str:
    fitting = here.free // need.process
    return f"--workers {fitting}, or " if processes > 1 and 0 < fitting < processes else ""


def refuse(need: Need, here: Machine | None) -> None:
    """Raise `ConfigError` for a need that no machine can meet, or that is far above the memory of the machine `here`.

    `here` is `None` if another machine or a GPU trains the runs.
    """
    if need.memory.parameters > NOWHERE:
        raise ConfigError(f"memory: {_largest(need)}, which no machine has; take {_fix(need, NOWHERE)}")
    if here is not None and need.process > MARGIN * here.whole:
        raise ConfigError(
            f"memory: {_largest(need)}, but this machine has {bytes_text(here.whole)}; take {_fix(need, here.free)}"
        )


def _largest(need: Need) -> str:
    """Return in words the cell, how much memory it needs, and the largest part of that."""
    parts = dict(zip(("its parameters", "its activations", "its logits", "its sequences"), need.memory, strict=True))
    most = max(parts, key=lambda name: parts[name])
    together = f" for {need.replicas} runs together" if need.replicas > 1 else ""
    return f"{need.name} needs roughly {bytes_text(need.process)}{together} ({most} alone: {bytes_text(parts[most])})"


def _fix(need: Need, room: int) -> str:
    """Return in words the smallest change of one key with which the runs fit into `room` bytes."""
    if need.replicas > 1 and memory(need.run).total + PROCESS <= room:
        return "a smaller --pack"
    for text, run in _smaller(need.run):
        if memory(run, need.replicas).total + PROCESS <= room:
            return text
    if need.memory.parameters > need.memory.total // 2:
        return "a smaller model.dim, model.layers or task.vocab"
    return "a smaller task.length, or a smaller train.batch and model.dim"


def _smaller(run: RunConfig) -> Iterator[tuple[str, RunConfig]]:
    """Yield smaller variants of `run` as (words, run): with the batch halved down to 1, then with longer segments."""
    batch = run.train.batch
    while batch > 1:
        batch //= 2
        yield f"train.batch {batch}", run.model_copy(update={"train": run.train.model_copy(update={"batch": batch})})
    mixer = run.model.mixer
    if not isinstance(mixer, MemoryMixer) or mixer.aggregate == "none" or mixer.segmentation == "listed":
        return
    segment = mixer.segment
    while 2 * segment < run.task.length:
        segment *= 2
        longer = run.model.model_copy(update={"mixer": mixer.model_copy(update={"segment": segment})})
        yield f"model.mixer.segment {segment}", run.model_copy(update={"model": longer})


def bytes_text(number: float) -> str:
    """Return a number of bytes in words: `250 MiB`, `1.2 GiB`, `35 TiB`."""
    for unit in ("MiB", "GiB", "TiB"):
        number /= 2**20 if unit == "MiB" else 1024
        if number < 1000 or unit == "TiB":
            break
    return f"{number:,.0f} {unit}" if number >= 10 or unit == "MiB" else f"{number:.1f} {unit}"

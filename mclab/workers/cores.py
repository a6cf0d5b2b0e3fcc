"""Find out how many cores this process may use and how busy the machine is, without Dask or torch."""

import math
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: The machine counts as busy with other programs if its load per processor is above this.
BUSY = 1.25


@dataclass(frozen=True)
class Processors:
    """The processors of a machine: `count` in all, `cores` that this process may use, and the `load`.

    Two processors (hardware threads) may share one core. `load` is the mean number of programs that wanted to run
    during the last minute.
    """

    count: int
    cores: int
    load: float

    @property
    def busy(self) -> bool:
        """True if other programs already use all processors."""
        return self.load > BUSY * self.count

    def slower(self, workers: int) -> float:
        """Return the factor by which other programs slow down `workers` workers; 1 on a machine that is not busy."""
        return max(1.0, (self.load + workers) / self.count) if self.busy else 1.0


def processors() -> Processors:
    """Return the processors of this machine and its present load."""
    return Processors(os.cpu_count() or 1, min(cores(), _separate()), os.getloadavg()[0])


def cores() -> int:
    """Return how many processors this process may use, within its CPU affinity and the limits of control groups."""
    quota = min((math.ceil(share) for share in _quotas()), default=None)
    mine = len(_allowed())
    return mine if quota is None else max(1, min(mine, quota))


def _allowed() -> Collection[int]:
    """Return the numbers of the processors that this process may run on; all if the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _separate() -> int:
    """Return how many different cores the allowed processors belong to, since hardware threads may share a core."""
    found: set[str] = set()
    for number in _allowed():
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        try:
            found.add(path.read_text().strip())
        except OSError:
            found.add(str(number))
    return len(found)


def _quotas() -> Iterator[float]:
    """Yield the limits of the control groups (versions 1 and 2) in processors, that is in processor time per time."""
    for folder in ("cpuacct,cpu", "cpu,cpuacct"):
        with suppress(OSError, ValueError):
            at = f"/sys/fs/cgroup/{folder}/cpu.cfs_"
            quota, period = (int(Path(f"{at}{name}_us").read_text()) for name in ("quota", "period"))
            if quota > 0 and period > 0:
                yield quota / period
    with suppress(OSError, ValueError):
        group = Path("/proc/self/cgroup").read_text().strip().split(":")[-1]
        limit, period = map(int, (Path(f"/sys/fs/cgroup{group}") / "cpu.max").read_text().split())
        if limit > 0 and period > 0:
            yield limit / period

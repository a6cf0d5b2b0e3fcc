"""The cores that this process may use, and how busy the machine is. Read from the system, without Dask or torch."""

import math
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Other programs count as keeping the machine busy from so many running ones for each processor.
BUSY = 1.25


@dataclass(frozen=True)
class Processors:
    """How many the system counts, the `cores` of them that this process may use (two processors may share one), and the
    `load`: how many programs have wanted to run over the last minute."""

    count: int
    cores: int
    load: float

    @property
    def busy(self) -> bool:
        """Whether other programs take the processors as it is."""
        return self.load > BUSY * self.count

    def slower(self, workers: int) -> float:
        """How many times longer so many workers take while other programs run as now; 1 where there is room."""
        return max(1.0, (self.load + workers) / self.count) if self.busy else 1.0


def processors() -> Processors:
    """Those of this machine, as they are now."""
    return Processors(os.cpu_count() or 1, min(cores(), _separate()), os.getloadavg()[0])


def cores() -> int:
    """The processors that this process may use, control groups and affinity counted."""
    quota = min((math.ceil(share) for share in _quotas()), default=None)
    mine = len(_allowed())
    return mine if quota is None else max(1, min(mine, quota))


def _allowed() -> Collection[int]:
    """The numbers of those that this process may run on; not every system tells."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _separate() -> int:
    """How many cores the processors of this process are: hardware threads of one core share it."""
    found: set[str] = set()
    for number in _allowed():
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        try:
            found.add(path.read_text().strip())
        except OSError:
            found.add(str(number))
    return len(found)


def _quotas() -> Iterator[float]:
    """What the control groups, version 1 and 2, allow: processors' time over time."""
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

"""Predict how long a command takes, as a range, from the cost of its runs and the number of workers.

More workers than cores make nothing faster. Stored runs may already have been slow for this reason, since several were
trained at the same time. So the lower end of the range divides the work by the number of workers, and the upper end by
the number of cores. Other programs that keep the machine busy make runs slower by some factor, but they may end
meanwhile. So the upper end is multiplied by this factor, and the lower end by its square root. If the prediction is
from stored runs, other programs may have made these slower too. Then the upper end is multiplied by the square root,
and the lower end is unchanged. The last run may begin only when the others end, so the longest run is added to the
upper end.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from mclab.config.options import AUTO, RunOptions
from mclab.runner.estimate import duration
from mclab.runner.eta import Ahead
from mclab.runner.history import History, Work
from mclab.runner.memory_limits import trains_here
from mclab.workers import worker_count
from mclab.workers.cores import Processors, processors

#: The seconds that a command takes besides its runs: to load torch and check the models; to write tables and plots.
LOADING, ENDING = 2.5, 3.0
#: The seconds to start the scheduler, and the seconds of one core that each worker needs to load Dask and torch.
SCHEDULER, WORKER = 1.5, 3.0
#: The four constants above are right within this factor.
_OFF = 1.5


@dataclass(frozen=True)
class TimeRange:
    """A predicted time between `low` and `high` seconds.

    `runs` is the number of stored runs on which it is based; `busy` says that other programs keep the machine busy.
    """

    low: float
    high: float
    runs: int = 0
    busy: bool = False

    def text(self) -> str:
        """Return the range in words: `about 40 s to 2 min`."""
        return f"about {range_text(self.low, self.high)}"

    @property
    def basis(self) -> str:
        """A text that says on what the estimate is based."""
        stored = (
            f"from {self.runs:,} stored run{'s' * (self.runs != 1)}"
            if self.runs
            else "a rough guess, as no runs are stored"
        )
        return f"{stored}; other programs are using this machine" if self.busy else stored


def time_range(
    work: Work, history: History, workers: int, threads: int, here: Processors, overhead: float = 0.0
) -> TimeRange:
    """Return the time that `workers` workers with `threads` threads each take for `work`, plus `overhead` seconds."""
    own = max(1, min(workers, here.cores // threads)) if history.device == "cpu" else workers
    slower = here.slower(workers * threads)
    down, up = (end / work.seconds if work.seconds else 1.0 for end in (work.low, work.high))
    low = max(work.low / (workers if history.runs else own), work.longest * down) + overhead / _OFF
    high = work.high / own + work.longest * up * (1 - 1 / own) + overhead * _OFF
    more, most = (1.0, sqrt(slower)) if history.runs else (sqrt(slower), slower)
    low, high = low * more, high * most
    return TimeRange(low, high, history.runs, here.busy)


def starting(workers: int, here: Processors) -> float:
    """Return the seconds until `workers` worker processes can train; 0 for one, which is this process."""
    return SCHEDULER + WORKER * max(1.0, workers / here.cores) if workers > 1 else 0.0


def planned_device(options: RunOptions) -> str:
    """Return the device that a command will train on, as far as it is known without torch."""
    auto = "cpu" if trains_here(options.device, options.scheduler) else "cuda"
    return auto if options.device == AUTO else options.device


def planned_workers(options: RunOptions, runs: int) -> int:
    """Return the number of processes for `runs` runs. `auto` counts as 1 unless runs train on this machine's CPU."""
    if options.workers == AUTO and not trains_here(options.device, options.scheduler):
        return 1
    return max(1, min(worker_count(replace(options, device="cpu")), runs))


def whole_command(work: Work, history: History, workers: int, options: RunOptions) -> TimeRange | None:
    """Return the time of a whole command, from loading torch to writing tables.

    `None` on a cluster, and if there is nothing to predict it from.
    """
    if options.scheduler is not None or not history.knows:
        return None
    here = processors()
    return time_range(work, history, workers, options.threads, here, LOADING + starting(workers, here) + ENDING)


def time_text(whole: TimeRange | None, device: str, workers: int) -> str:
    """Return the time in words for a dry run: `about 40 s to 2 min on 2 CPU workers (from 24 stored runs)`."""
    if whole is None:
        return "the time is unknown, because no run on this device is stored"
    kind = "CPU" if device == "cpu" else "GPU"
    return f"{whole.text()} on {workers} {kind} worker{'s' * (workers != 1)} ({whole.basis})"


def range_text(low: float, high: float) -> str:
    """Return a range in words, with rounded ends: `40 s to 2 min`; a single time where both ends are equal in words."""
    ends = [duration(_rounded(end)) for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _rounded(seconds: float) -> float:
    """Round to 5 seconds if there are 10 seconds or more; the prediction is not more precise than that."""
    return 5 * round(seconds / 5) if seconds >= 10 else seconds


class Countdown:
    """Counts down a predicted range until something is measured."""

    def __init__(self, whole: TimeRange | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._whole, self._clock = whole, clock
        self._began = clock()

    def ahead(self) -> Ahead | None:
        """Return what is left of the range; `None` without a range, and once its time is over."""
        gone = self._clock() - self._began
        if self._whole is None or gone >= self._whole.high:
            return None
        return Ahead(0.0, self._whole.high - gone, max(0.0, self._whole.low - gone))


def before_runs(processes: int) -> str:
    """Return in words what must be done before the first run can begin. `processes` is 0 for a cluster."""
    if processes == 1:
        return ""
    return f"starting {processes} workers" if processes else "waiting for a worker of the cluster"

"""How long a command takes: a range, from what its runs cost and how many workers share the machine.

Workers beyond the machine's cores make nothing faster. The times of stored runs may hold that already, since they were
taken beside one another; so the lower end of the range divides them among all workers, the upper one among the cores.
Where other programs keep the machine busy now they leave less of the processors, and may end meanwhile: by the factor
by which that is slower the upper end is longer, and by its root the lower one. Stored runs may have been slowed by such
programs too: there the upper end is longer by the root, the lower one as it is.
The last run may begin when the others end: the upper end counts the longest run by itself.
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

#: Seconds that a command takes besides its runs: to load torch and check the models, to write tables and plots.
LOADING, ENDING = 2.5, 3.0
#: To start the scheduler, and seconds of a core for each worker that loads Dask and torch.
SCHEDULER, WORKER = 1.5, 3.0
#: These are good to this factor either way.
_OFF = 1.5


@dataclass(frozen=True)
class TimeRange:
    """Between `low` and `high` seconds, from the times of `runs` stored runs; `busy` where other programs slow down."""

    low: float
    high: float
    runs: int = 0
    busy: bool = False

    def text(self) -> str:
        """As `about 40 s to 2 min`."""
        return f"about {range_text(self.low, self.high)}"

    @property
    def basis(self) -> str:
        """What the estimate is based on, in words."""
        stored = f"from {self.runs:,} stored run{'s' * (self.runs != 1)}" if self.runs else "no stored runs to go by"
        return f"{stored}; other programs keep this machine busy" if self.busy else stored


def time_range(
    work: Work, history: History, workers: int, threads: int, here: Processors, overhead: float = 0.0
) -> TimeRange:
    """The time that `workers` need for the work, each with its threads, and for the `overhead` of the command."""
    own = max(1, min(workers, here.cores // threads)) if history.device == "cpu" else workers
    slower = here.slower(workers * threads)
    down, up = (end / work.seconds if work.seconds else 1.0 for end in (work.low, work.high))
    low = max(work.low / (workers if history.runs else own), work.longest * down) + overhead / _OFF
    high = work.high / own + work.longest * up * (1 - 1 / own) + overhead * _OFF
    more, most = (1.0, sqrt(slower)) if history.runs else (sqrt(slower), slower)
    low, high = low * more, high * most
    return TimeRange(low, high, history.runs, here.busy)


def starting(workers: int, here: Processors) -> float:
    """Seconds until so many worker processes can train; none where this process does."""
    return SCHEDULER + WORKER * max(1.0, workers / here.cores) if workers > 1 else 0.0


def planned_device(options: RunOptions) -> str:
    """The kind of device that a command will train on, as far as is known without torch."""
    auto = "cpu" if trains_here(options.device, options.scheduler) else "cuda"
    return auto if options.device == AUTO else options.device


def planned_workers(options: RunOptions, runs: int) -> int:
    """The processes that so many runs will be spread over; `auto` on other devices than a CPU here is taken for one."""
    if options.workers == AUTO and not trains_here(options.device, options.scheduler):
        return 1
    return max(1, min(worker_count(replace(options, device="cpu")), runs))


def whole_command(work: Work, history: History, workers: int, options: RunOptions) -> TimeRange | None:
    """The time of a command that has not begun, from loading torch to its tables; `None` where nothing tells."""
    if options.scheduler is not None or not history.knows:
        return None
    here = processors()
    return time_range(work, history, workers, options.threads, here, LOADING + starting(workers, here) + ENDING)


def time_text(whole: TimeRange | None, device: str, workers: int) -> str:
    """A dry run's words: `about 40 s to 2 min on 2 CPU workers (from 24 stored runs)`."""
    if whole is None:
        return "how long that takes is unknown: no stored run of this device"
    kind = "CPU" if device == "cpu" else "GPU"
    return f"{whole.text()} on {workers} {kind} worker{'s' * (workers != 1)} ({whole.basis})"


def range_text(low: float, high: float) -> str:
    """A range as people say it, each end rounded: `40 s to 2 min`; one length where both are the same."""
    ends = [duration(_rounded(end)) for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _rounded(seconds: float) -> float:
    """To five seconds from ten seconds on: more would be said than is known."""
    return 5 * round(seconds / 5) if seconds >= 10 else seconds


class Countdown:
    """What is left of a range while nothing is measured; `None` when its time is over."""

    def __init__(self, whole: TimeRange | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._whole, self._clock = whole, clock
        self._began = clock()

    def ahead(self) -> Ahead | None:
        """What is ahead by now."""
        gone = self._clock() - self._began
        if self._whole is None or gone >= self._whole.high:
            return None
        return Ahead(0.0, self._whole.high - gone, max(0.0, self._whole.low - gone))

"""What runs cost on this machine, as far as stored runs say so.

Only runs count that are done and were trained on a device of the same kind with as many threads, where their records
tell. Runs of one shape cost the same: one that has stored runs costs the median of their seconds. For any other shape
the arithmetic of `estimate` is multiplied by the ratio at which stored shapes stand to it: the geometric mean, with one
half of a shape at the ratio 1 added, so that few shapes count for less.

How wrong that may be is a factor either way. Without stored runs it is 2.5: the constants of the arithmetic were found
good to a factor of two or three. With them, its logarithm is the root of the mean of squares: twice what each stored
shape's ratio is off the mean, and log 2.5 as if that were one more shape. For a shape with runs of its own the squares
are twice what each run is off its shape's median, and log 1.5 as one more. It is never less than 1.2, since a machine
is not as busy one day as the next. Errors of shapes are taken to go the same way, so that a sum is as wrong as its
parts.
"""

import platform
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import exp, fsum, log, sqrt
from statistics import median

from mclab.config.ids import SCIENCE, shape_key
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.runner.estimate import seconds

#: Logarithms of factors either way: without stored runs, of a shape with one run, and the least.
_GUESSED, _MEASURED, _LEAST = log(2.5), log(1.5), log(1.2)
#: So many shapes at the ratio 1 are added to the stored ones.
_PRIOR = 0.5
#: Records that are read for this beside those that a command reads anyway, and of both those that are looked at.
FRESH, MOST = 100, 500


@dataclass(frozen=True)
class Work:
    """Seconds of runs one after the other, between `low` and `high`; `longest` is the longest run of them."""

    seconds: float
    low: float
    high: float
    longest: float


class History:
    """Stored runs of this kind of `device` and these `threads`, ready to say what others cost."""

    def __init__(self, stored: Iterable[StoredRun] = (), device: str = "cpu", threads: int | None = None) -> None:
        whole = [run for run in stored if _tells(run)]
        self.device = "cuda" if device.startswith("cuda") else "cpu"
        self._kinds: dict[Hashable, str] = {}
        self._costs: dict[Hashable, tuple[float, float]] = {}
        times: dict[str, list[float]] = defaultdict(list)
        examples: dict[str, RunConfig] = {}
        for run in whole:
            if run.config is not None and run.wall_s is not None and _fits(run, self.device, threads):
                kind = self._kind(run.config, _key(run.config))
                times[kind].append(run.wall_s)
                examples[kind] = run.config
        self.runs = sum(map(len, times.values()))
        self._medians = {kind: median(several) for kind, several in times.items()}
        off = [log(each / self._medians[kind]) for kind, several in times.items() for each in several]
        self._measured = _spread(off, self.runs - len(times), _MEASURED)
        ratios = [log(self._medians[kind] / seconds([run])) for kind, run in examples.items()]
        prior = _PRIOR if self.device == "cpu" else 0.0  # the arithmetic knows nothing of other devices
        self._ratio = fsum(ratios) / (len(ratios) + prior) if ratios else 0.0
        self._guessed = _spread([ratio - self._ratio for ratio in ratios], len(ratios), _GUESSED)

    @property
    def knows(self) -> bool:
        """Whether it can say anything: of other devices than a CPU stored runs alone tell."""
        return self.device == "cpu" or self.runs > 0

    def seconds(self, run: RunConfig) -> float:
        """Seconds of this run in a process of its own."""
        return self._cost(run)[0]

    def work(self, runs: Iterable[RunConfig], total: float | None = None) -> Work:
        """What these runs cost; `total` runs that are like them on average, where it is given."""
        costs = [self._cost(run) for run in runs]
        share = 1.0 if total is None or not costs else total / len(costs)
        low, high = (share * fsum(cost * exp(way * off) for cost, off in costs) for way in (-1, 1))
        return Work(share * fsum(cost for cost, _ in costs), low, high, max((cost for cost, _ in costs), default=0.0))

    def _cost(self, run: RunConfig) -> tuple[float, float]:
        """Seconds, and the logarithm of the factor by which they may be wrong."""
        key = _key(run)
        if key not in self._costs:
            known = self._medians.get(self._kind(run, key)) if self._medians else None
            guess = known or seconds([run]) * exp(self._ratio)
            self._costs[key] = guess, self._measured if known else self._guessed
        return self._costs[key]

    def _kind(self, run: RunConfig, key: Hashable) -> str:
        """Equal for runs that cost the same: those of a shape, unless they may stop early."""
        if key not in self._kinds:
            stop = run.train.stop_at
            self._kinds[key] = shape_key(run) + (f" {stop}" if stop is not None else "")
        return self._kinds[key]


def _tells(run: StoredRun) -> bool:
    """Whether the run went its whole way, or to where it was to stop early, and says how long that took."""
    if run.status != "done" or run.config is None or run.science != SCIENCE or not run.wall_s:
        return False
    return run.steps == run.config.train.steps or run.config.train.stop_at is not None


def _fits(run: StoredRun, device: str, threads: int | None) -> bool:
    """Whether it was trained as this command trains. What its record does not tell is taken to fit."""
    name, used = run.fact("device_name"), run.fact("threads")
    if (run.fact("device") or "cpu") != device:
        return False
    if device != "cpu":
        return True
    return name in (None, platform.machine()) and (threads is None or used in (None, str(threads)))


def _key(run: RunConfig) -> Hashable:
    """What is quick to compare and tells shapes apart, before keys that change nothing are dropped."""
    train = run.train
    kept = (train.steps, train.batch, train.warmup, train.examples, train.task, train.precision, train.stop_at)
    return (run.task, run.model, run.eval, *kept)


def _spread(off: Iterable[float], count: int, default: float) -> float:
    """The rule above; `count` of the values are free to differ."""
    return max(_LEAST, sqrt((default**2 + fsum((2 * each) ** 2 for each in off)) / (count + 1)))

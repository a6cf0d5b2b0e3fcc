"""Predict how long runs take on this machine, from the times of stored runs.

A stored run is used if it is done and was trained on the same kind of device with the same number of threads, as far as
its record says. Runs of one shape cost the same: a shape with stored runs costs the median of their seconds. For any
other shape, the result of `mclab.runner.estimate` is multiplied by the geometric mean, over the stored shapes, of the
ratios measured / estimated. Half a shape with the ratio 1 is added to this mean, so that few shapes have less weight.

A prediction may be wrong by a factor in either direction. Without stored runs the factor is 2.5, since the constants of
the estimate were found right within a factor of two or three. With stored runs, the logarithm of the factor is a root
mean square over these terms: for each stored shape, twice the deviation of its log ratio from the mean; and log 2.5, as
if that were one more shape. For a shape with stored runs, the terms are, for each of its runs, twice the deviation of
its log time from the shape's median; and log 1.5. The factor is never less than 1.2, since the load of a machine
differs from day to day. Errors of different shapes are assumed to have the same sign, so that the relative error of a
sum is that of its terms.
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

#: Logarithms of the factor by which a prediction may be wrong: without stored runs; for a shape with one stored run;
#: the smallest.
_GUESSED, _MEASURED, _LEAST = log(2.5), log(1.5), log(1.2)
#: The number of shapes with the ratio 1 that are added to the stored shapes.
_PRIOR = 0.5
#: The number of records to read in addition to those that the command has read already, and the number to use in all.
FRESH, MOST = 100, 500


@dataclass(frozen=True)
class Work:
    """The predicted work of some runs:

    `seconds` one after the other, between `low` and `high`, at most `longest` each.
    """

    seconds: float
    low: float
    high: float
    longest: float


class History:
    """Predicts the seconds of runs from stored runs on the same kind of `device` and with the same `threads`."""

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
        prior = _PRIOR if self.device == "cpu" else 0.0  # the estimate is only for a CPU
        self._ratio = fsum(ratios) / (len(ratios) + prior) if ratios else 0.0
        self._guessed = _spread([ratio - self._ratio for ratio in ratios], len(ratios), _GUESSED)

    @property
    def knows(self) -> bool:
        """True if a prediction is possible. For devices other than a CPU it needs stored runs."""
        return self.device == "cpu" or self.runs > 0

    def seconds(self, run: RunConfig) -> float:
        """Return the predicted seconds of `run` in a separate process."""
        return self._cost(run)[0]

    def work(self, runs: Iterable[RunConfig], total: float | None = None) -> Work:
        """Return the predicted work of `runs`; with `total`, that of `total` runs with the same mean cost."""
        costs = [self._cost(run) for run in runs]
        share = 1.0 if total is None or not costs else total / len(costs)
        low, high = (share * fsum(cost * exp(way * off) for cost, off in costs) for way in (-1, 1))
        return Work(share * fsum(cost for cost, _ in costs), low, high, max((cost for cost, _ in costs), default=0.0))

    def _cost(self, run: RunConfig) -> tuple[float, float]:
        """Return the predicted seconds, and the logarithm of the factor by which they may be wrong."""
        key = _key(run)
        if key not in self._costs:
            known = self._medians.get(self._kind(run, key)) if self._medians else None
            guess = known or seconds([run]) * exp(self._ratio)
            self._costs[key] = guess, self._measured if known else self._guessed
        return self._costs[key]

    def _kind(self, run: RunConfig, key: Hashable) -> str:
        """Return a key that is equal for runs of the same cost: runs of one shape with the same early stop."""
        if key not in self._kinds:
            stop = run.train.stop_at
            self._kinds[key] = shape_key(run) + (f" {stop}" if stop is not None else "")
        return self._kinds[key]


def _tells(run: StoredRun) -> bool:
    """Return whether the run's time is usable: it trained to its last step, or was allowed to stop early."""
    if run.status != "done" or run.config is None or run.science != SCIENCE or not run.wall_s:
        return False
    return run.steps == run.config.train.steps or run.config.train.stop_at is not None


def _fits(run: StoredRun, device: str, threads: int | None) -> bool:
    """Return whether the run was trained on this device with these threads. Facts that its record lacks are ignored."""
    name, used = run.fact("device_name"), run.fact("threads")
    if (run.fact("device") or "cpu") != device:
        return False
    if device != "cpu":
        return True
    return name in (None, platform.machine()) and (threads is None or used in (None, str(threads)))


def _key(run: RunConfig) -> Hashable:
    """Return a key that is quick to compute and differs for different shapes; keys without effect are still in it."""
    train = run.train
    kept = (train.steps, train.batch, train.warmup, train.examples, train.task, train.precision, train.stop_at)
    return (run.task, run.model, run.eval, *kept)


def _spread(off: Iterable[float], count: int, default: float) -> float:
    """Return the logarithm of the factor by which a prediction may be wrong (see the top of this file).

    `off` are the deviations, of which `count` are independent; `default` is the added term.
    """
    return max(_LEAST, sqrt((default**2 + fsum((2 * each) ** 2 for each in off)) / (count + 1)))

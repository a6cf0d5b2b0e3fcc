"""Estimate the remaining time of a command; its packs are the jobs of `mclab.runner.eta`."""

from collections.abc import Iterator, Sequence

from mclab.config.ids import shape_key
from mclab.config.run import RunConfig
from mclab.runner.estimate import after_training
from mclab.runner.eta import Ahead, Eta, Job
from mclab.runner.history import History
from mclab.runner.packing import cost
from mclab.runner.pending import PendingRuns
from mclab.runner.time_range import Countdown, TimeRange
from mclab.workers import Pack


class Forecast:
    """Receives reports of packs that are submitted, advance and end, and estimates the remaining time.

    `processes` is 0 on a cluster and then stands for the number of running packs. Packs of one shape are jobs of one
    kind, since they cost the same whatever their seeds and learning rates. Before a pack has reported its speed, the
    estimate is the range `predicted`.
    """

    def __init__(self, runs: PendingRuns, processes: int, history: History, predicted: TimeRange | None = None) -> None:
        self._runs, self._eta, self._history = runs, Eta(processes), history
        self._predicted = Countdown(predicted)
        self._jobs: dict[int, list[Job]] = {}

    def add(self, pack: Pack) -> None:
        """Add a pack, which waits until its first `step`."""
        self._eta.add(pack, self._job(pack))

    def step(self, pack: Pack, step: int, steps: int) -> None:
        """Report the progress of a pack; `step` 0 of `steps` 0 says that it starts."""
        self._eta.step(pack, step, steps)

    def end(self, pack: Pack, *, done: bool) -> None:
        """Report that a pack has ended. With `done=False` its time is not used."""
        self._eta.end(pack, done)

    def ahead(self) -> Ahead | None:
        """Return the share of the work that is done and the remaining time."""
        return self._eta.ahead(self._later()) or self._predicted.ahead()

    def _later(self) -> Iterator[tuple[Sequence[Job], int]]:
        for number, count in self._runs.later().items():
            if number not in self._jobs:
                self._jobs[number] = [self._job((run,)) for run in self._runs.candidates(number)]
            yield self._jobs[number], count

    def _job(self, pack: Sequence[RunConfig]) -> Job:
        first = pack[0]
        seconds = sum(map(self._history.seconds, pack))
        return Job(shape_key(first), seconds, after_training(first), cost(tuple(pack)))

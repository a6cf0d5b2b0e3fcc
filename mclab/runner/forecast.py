"""The time that a command still needs: its packs, as jobs for the arithmetic of `eta`."""

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
    """Packs as they are handed in, step and end; 0 `processes` are those of a cluster, as many as are seen to run.

    Packs of one shape are of one kind: they cost the same whatever their seeds and rates. Until a pack has reported
    its speed, what is ahead is the range that was predicted.
    """

    def __init__(self, runs: PendingRuns, processes: int, history: History, predicted: TimeRange | None = None) -> None:
        self._runs, self._eta, self._history = runs, Eta(processes), history
        self._predicted = Countdown(predicted)
        self._jobs: dict[int, list[Job]] = {}

    def add(self, pack: Pack) -> None:
        """A pack that waits."""
        self._eta.add(pack, self._job(pack))

    def step(self, pack: Pack, step: int, steps: int) -> None:
        """A pack is so far; at 0 of 0 it starts."""
        self._eta.step(pack, step, steps)

    def end(self, pack: Pack, *, done: bool) -> None:
        """A pack is over; where it is not `done`, its time tells nothing."""
        self._eta.end(pack, done)

    def ahead(self) -> Ahead | None:
        """What is ahead now."""
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

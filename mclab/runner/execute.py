"""This module has the main loop, which trains the runs that a plan needs and stores the outcome of each."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mclab.config.ids import run_id
from mclab.config.options import ALONE, AUTO, Keep, RunOptions
from mclab.config.outcome import FINAL, Outcome
from mclab.config.run import RunConfig, Status
from mclab.plan.plan import Plan
from mclab.plan.select import Wanted
from mclab.runner.compiling import Failures, decided
from mclab.runner.devices import unmet
from mclab.runner.eta import Ahead
from mclab.runner.forecast import Forecast
from mclab.runner.history import FRESH, MOST, History
from mclab.runner.packing import cost, free, halves, packs_of
from mclab.runner.pending import PendingRuns
from mclab.runner.time_range import ENDING, TimeRange, before_runs, starting, time_range
from mclab.store import Store
from mclab.store.crashes import Flights
from mclab.workers import Failure, Pack, Pool, Result, Train, open_pool, worker_count
from mclab.workers.cores import processors

#: The statuses that count towards --max-failures.
_BAD: tuple[Status, ...] = ("failed", "diverged", "oom")
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Progress:
    """The progress of a command: `done` of about `total` runs, or of what `what` names.

    If all runs train in one process, `step` of `steps` is the step of the current pack. `ahead()` estimates the
    remaining time at the moment of the call; it is `None` if nothing is known. `stage()` says what must be done before
    the first run can begin; it is empty once that run has begun.
    """

    done: int
    total: int
    step: int = 0
    steps: int = 0
    ahead: Callable[[], Ahead | None] = field(default=lambda: None, compare=False, repr=False)
    what: str = "runs"
    stage: Callable[[], str] = field(default=lambda: "", compare=False, repr=False)


@dataclass(frozen=True)
class Start:
    """The work that a command is about to do: about `runs` runs in `processes` processes on this machine, 0 on a
    cluster.

    `time` is the predicted time; `None` on a cluster, and on a GPU without stored runs to predict it from.
    """

    runs: int
    processes: int
    time: TimeRange | None


@dataclass(frozen=True)
class Summary:
    """The result of a command: `ran` counts the runs of this command by status, `stored` all stored runs of the plan.

    `missing` is the number of runs that are needed but not stored. `stopped` is the reason for an early stop: an
    interrupt, or too many failures.
    """

    ran: Counter[str]
    stored: Counter[str]
    missing: int
    wall_s: float
    interrupted: bool = False
    stopped: str | None = None

    @property
    def skipped(self) -> int:
        """The number of runs that earlier commands stored and this one did not run."""
        return self.stored.total() - self.ran.total()

    @property
    def clean(self) -> bool:
        """True if every run is stored and none failed, diverged or ran out of memory."""
        return not self.missing and set(self.stored) <= {"done", "pruned"}


def execute(
    plan: Plan,
    store: Store,
    options: RunOptions = ALONE,
    *,
    begin: Callable[[Start], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    echo: Echo | None = None,
    train: Train | None = None,
    wanted: Wanted | None = None,
) -> Summary:
    """Train the runs that the plan needs and the store lacks. Each outcome is stored before the next one is fetched.

    `options.device` must not be `auto` (see `mclab.runner.devices.resolved`). An interrupt ends the command: outcomes
    so far are stored, and running packs are lost. `train` is by default `mclab.train.train_pack`; its checkpoints are
    in the store. `begin` is called once before the first run, and not at all if there is nothing to run. For a
    sequential plan, `wanted` says how many seeds each cell needs. Raises `StoreError` if a record cannot be written,
    and `ConfigError` if no scheduler answers.
    """
    began, pending = time.monotonic(), PendingRuns(plan, store.lookup, retry_failed=options.retry_failed, wanted=wanted)
    execution = _Execution(pending, store, options, progress or _nothing, echo or _nothing)
    interrupted = False
    try:
        stopped = execution.go(train, begin or _nothing)
    except KeyboardInterrupt:
        interrupted, stopped = True, "interrupted"
    finally:
        execution.flights.end()
    stored, missing = pending.statuses()
    return Summary(execution.ran, stored, missing, time.monotonic() - began, interrupted, stopped)


def _nothing(_: object) -> None:
    pass


class _Execution:
    """The state of one command while it trains the runs that the plan needs."""

    def __init__(
        self,
        pending: PendingRuns,
        store: Store,
        options: RunOptions,
        progress: Callable[[Progress], None],
        echo: Echo,
    ) -> None:
        self.pending, self.store, self.options, self.progress, self.echo = pending, store, options, progress, echo
        self.ran, self.failures = Counter[str](), Failures(echo)
        self.history = History()
        self.forecast = Forecast(pending, 1, self.history)
        self.alone, self.stage = True, ""
        self.flights = Flights(store.path, store.begun())
        self.flights.acquit(self._is_over)

    def go(self, train: Train | None, begin: Callable[[Start], None]) -> str | None:
        """Run everything that is needed. Returns the reason if it stops early, else `None`."""
        options, begun = self.options, self.store.begun()
        count, pack = worker_count(options), options.pack
        room = free(options, count) if pack == AUTO else None

        def packed(runs: list[RunConfig]) -> list[Pack]:
            runs = self._sound(runs)
            suspects = [run for run in runs if self.flights.suspect(run_id(run))]
            others = [run for run in runs if not self.flights.suspect(run_id(run))]
            packs = packs_of(
                others,
                pack,
                device=options.device,
                workers=count,
                step=lambda run: begun.get(run_id(run)),
                room=room,
            )
            return packs + [(run,) for run in suspects]

        first = packed(self.pending.all())
        if not first:
            return None
        runs = [run for pack in first for run in pack]
        for line in unmet(runs, options):
            self.echo(line)
        useful = min(count, len(first) + self.pending.expected)
        processes = 0 if options.scheduler else useful
        self.history = History(self.store.sample(FRESH, MOST), options.device, options.threads)
        options = decided(options, runs, self._total, useful, self.history, self.echo)
        begin(Start(self._total, processes, self._time(first, processes, ENDING)))
        self.forecast = Forecast(self.pending, processes, self.history, self._time(first, processes))
        self.alone, self.stage = processes == 1, before_runs(processes)
        if self.stage:
            self._tell()
        keep = Keep(self.store.checkpoints.absolute(), options.save_weights)
        with open_pool(options, useful, train=train, progress=self._step, keep=keep, say=self.echo) as pool:
            self._submit(pool, first)
            self._tell()
            for done, result in pool.finished():
                if not self._split(pool, done, result):
                    self._submit(pool, packed(self._keep(done, result)))
                if reason := self._enough():
                    return reason
        return None

    @property
    def _total(self) -> int:
        return self.pending.given + self.pending.expected

    def _time(self, first: list[Pack], processes: int, after: float = 0.0) -> TimeRange | None:
        """Return the predicted time of all runs, with the start of the processes and `after` seconds at the end.

        `None` if it is unknown, and on a cluster.
        """
        if not processes or not self.history.knows:
            return None
        here, work = processors(), self.history.work((run for pack in first for run in pack), self._total)
        return time_range(work, self.history, processes, self.options.threads, here, starting(processes, here) + after)

    def _split(self, pool: Pool, pack: Pack, result: Result) -> bool:
        """If a pack of several runs ran out of memory, submit it again in two halves. Return whether this was so."""
        if not isinstance(result, Failure) or result.status != "oom" or len(pack) == 1:
            return False
        left, right = halves(pack)
        self.forecast.end(pack, done=False)
        self.flights.settle(ids(pack))
        self.echo(
            f"{len(pack)} runs together do not fit into memory; {len(left)} and {len(right)} of them "
            "are trained one after the other"
        )
        self._submit(pool, [left, right])
        return True

    def _submit(self, pool: Pool, packs: list[Pack]) -> None:
        for pack in packs:
            self.forecast.add(pack)
            pool.submit(pack, priority=cost(pack))

    def _keep(self, pack: Pack, result: Result) -> list[RunConfig]:
        """Store a pack's outcomes, and return the further runs that are needed now."""
        self.forecast.end(pack, done=not isinstance(result, Failure))
        if isinstance(result, Failure):
            result = [Outcome(result.status, error=result.error)] * len(pack)
        for run, outcome in zip(pack, result, strict=True):
            self._put(run, outcome)
        self.flights.settle(ids(pack))
        new = [found for run in pack for found in self.pending.done_with(run)]
        self._tell()
        return new

    def _is_over(self, run: str) -> bool:
        record = self.store.lookup(run)
        return record is not None and record.status in FINAL

    def _put(self, run: RunConfig, outcome: Outcome) -> None:
        self.store.put(run, outcome)
        self.ran[outcome.status] += 1
        for remark in outcome.provenance.get("remarks", ()):
            self.echo(f"{self.pending.label(run)}: {remark}")
        self.failures.note(outcome)
        if outcome.status in _BAD:
            self.echo(f"{self.pending.label(run)}: {_why(outcome)}")

    def _sound(self, runs: Sequence[RunConfig]) -> list[RunConfig]:
        """Return the runs that may be trained. A run at which the process died too often is stored as failed instead.

        Runs that are needed because of such a failure are added.
        """
        sound, open_ = list[RunConfig](), deque(runs)
        while open_:
            run = open_.popleft()
            if error := self.flights.poison(run_id(run)):
                self._put(run, Outcome("failed", error=error))
                self.flights.settle(ids([run]))
                open_.extend(self.pending.done_with(run))
            else:
                sound.append(run)
        return sound

    def _step(self, pack: Pack, step: int, steps: int) -> None:
        """Record the progress of a pack.

        Its step is reported only if packs train one after the other in this process.
        """
        self.stage = ""
        self.forecast.step(pack, step, steps)
        if not self.alone:  # what follows is about deaths of this process, not of workers
            return
        if steps:
            self.flights.reached(step / steps)
            self._tell(step, steps)
        else:
            self.flights.begin(ids(pack))

    def _tell(self, step: int = 0, steps: int = 0) -> None:
        found = Progress(self.ran.total(), self._total, step, steps, self.forecast.ahead, stage=lambda: self.stage)
        self.progress(found)

    def _enough(self) -> str | None:
        bad, limit = sum(self.ran[status] for status in _BAD), self.options.limit
        if limit is None or bad < limit:
            return None
        option = "--fail-fast" if self.options.fail_fast else f"--max-failures {limit}"
        return f"stopped after {bad} failed run{'s' * (bad != 1)} ({option})"


def ids(runs: Iterable[RunConfig]) -> list[str]:
    """Return the runs' ids, in order."""
    return [run_id(run) for run in runs]


def _why(outcome: Outcome) -> str:
    if outcome.status == "diverged":
        return f"diverged at step {outcome.diverged_step}"
    return f"{'out of memory' if outcome.status == 'oom' else 'failed'}: {outcome.error}"

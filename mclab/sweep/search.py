"""The loop of a search: claim trials, train the runs that are not stored yet, give the study the results."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from optuna.trial import TrialState

from mclab.config.ids import run_id
from mclab.config.options import AUTO, Keep, RunOptions
from mclab.config.outcome import FINAL, Outcome
from mclab.config.run import RunConfig
from mclab.runner import Ahead, Progress
from mclab.runner.compiling import Failures, decided
from mclab.runner.devices import unmet
from mclab.runner.history import FRESH, MOST, History
from mclab.runner.packing import cost, free, halves, packs_of
from mclab.runner.time_range import Countdown, TimeRange, before_runs, starting, time_range
from mclab.store import Store
from mclab.sweep.cost import drawn, work_of
from mclab.sweep.owner import BEAT
from mclab.sweep.pruning import Pruned, bars
from mclab.sweep.report import Tally, failure_text
from mclab.sweep.results import end_of, same_end_as
from mclab.sweep.storage import UnansweredError
from mclab.sweep.study import Claim, End, Shared
from mclab.sweep.trials import BEGUN
from mclab.workers import Failure, Pack, Pool, Result, open_pool, worker_count
from mclab.workers.cores import processors

#: The trials to claim at once for each worker on a GPU; those of one shape train together.
BATCH = 16
#: Seconds between two requests to the study for the state of other processes' trials.
_POLL = 0.5


class Search:
    """The part of a search that one process does."""

    def __init__(
        self,
        shared: Shared,
        store: Store,
        how: RunOptions,
        progress: Callable[[Progress], None],
        say: Callable[[str], None],
    ) -> None:
        self._shared, self._store, self._how, self._progress, self._say = shared, store, how, progress, say
        self.tally, self._began = Tally(), time.monotonic()
        self._claims: dict[int, Claim] = {}
        self._own: dict[int, list[str]] = {}
        self._over: list[tuple[Claim, bool]] = []
        self._unanswered: UnansweredError | None = None
        self._spent: dict[str, float] = {}
        self._awaited: dict[str, list[int]] = defaultdict(list)
        self._pruned = Pruned(shared.space.objectives[0].metric) if shared.space.pruner == "median" else None
        self._count = self._width = 1
        self._done, self._waits, self._noted = 0, False, 0.0
        self._stage, self._predicted = "", Countdown(None)
        self._room: int | None = None
        self._told, self._failures = set[str](), Failures(say)

    def go(self) -> None:
        """Search until all trials are finished or too many have failed."""
        how, left = self._how, self._shared.left() * len(self._shared.space.seeds)
        if not left:
            return
        count = worker_count(how)
        self._count = count if how.scheduler else min(count, left)
        self._room = free(how, self._count) if how.pack == AUTO else None
        self._width = self._count * BATCH if how.device.startswith("cuda") else self._count
        processes = 0 if how.scheduler else self._count
        history = History(self._store.sample(FRESH, MOST), how.device, how.threads)
        self._predicted = Countdown(self._span(processes, history))
        how = decided(how, drawn(self._shared.space), left, self._count, history, self._say, sampled=True)
        self._stage = before_runs(processes)
        if self._stage:
            self._show_progress()
        with open_pool(
            how,
            self._count,
            train=self._pruned,
            progress=self._step,
            keep=Keep(self._store.checkpoints.absolute()),
            say=self._say,
        ) as pool:
            while self.tally.stopped is None:
                self._advance(pool)
                for pack, result in pool.finished():
                    self._store_outcomes(pool, pack, result)
                    self._advance(pool)
                    if self.tally.stopped is not None:
                        return
                if self._unanswered is not None:
                    raise self._unanswered
                if self.tally.stopped is None and not self._wait_for_others():
                    return

    def _span(self, processes: int, history: History) -> TimeRange | None:
        """Return how long the remaining trials and the start of the processes take; `None` if that is not known."""
        if not processes or not history.knows:
            return None
        work, here = work_of(self._shared.space, self._shared.left(), history), processors()
        return time_range(work, history, processes, self._how.threads, here, starting(processes, here))

    def _wait_for_others(self) -> bool:
        """Wait a little if other processes hold unfinished trials. Return `False` if there are no such trials."""
        if not self._shared.open():
            return False
        if not self._waits:
            self._waits = True
            self._say("waiting for other processes, which have the remaining trials and finish them or give them up")
        time.sleep(_POLL)
        return True

    def _advance(self, pool: Pool) -> None:
        """Write ended trials to the study, then claim more. Claim nothing if the study does not answer."""
        try:
            self._tell_study()
            if self.tally.stopped is None:
                self._fill(pool)
            self._unanswered = None
        except UnansweredError as error:
            if self._claims and self._unanswered is None:
                self._say("the study does not answer: runs in training are finished and stored, then the command ends")
            self._unanswered = error

    def _fill(self, pool: Pool) -> None:
        """Claim trials while workers are free; finish those whose runs are stored; submit the other runs by shape."""
        wanted, alone = list[RunConfig](), list[RunConfig]()
        if self._pruned:
            self._pruned.bars = self._bars()
        try:
            self._claim(wanted, alone)
        except UnansweredError:
            self._submit(pool, wanted, alone)
            raise
        self._submit(pool, wanted, alone)
        self._show_progress()

    def _claim(self, wanted: list[RunConfig], alone: list[RunConfig]) -> None:
        """Claim trials while workers are free; add the runs to train to `wanted`, or for suspect trials to `alone`."""
        while len(self._awaited) < self._width and self.tally.stopped is None:
            claim = self._shared.claim(self._stored)
            self._store_poisoned()
            self.tally.catch_up(self._shared.caught_up.values())
            self._shared.caught_up.clear()
            if claim is None:
                return
            (alone if claim.suspect else wanted).extend(self._begin(claim))
            self._tell_study()

    def _submit(self, pool: Pool, wanted: list[RunConfig], alone: list[RunConfig]) -> None:
        begun = self._store.begun()
        packs = packs_of(
            wanted,
            self._how.pack,
            device=self._how.device,
            workers=self._count,
            step=lambda run: begun.get(run_id(run)),
            room=self._room,
        )
        for line in sorted({*unmet([*wanted, *alone], self._how)} - self._told):
            self._told.add(line)
            self._say(line)
        for pack in [*packs, *((run,) for run in alone)]:
            pool.submit(pack, priority=cost(pack))

    def _store_poisoned(self) -> None:
        """Store as failed the runs at which processes died too often, here or elsewhere."""
        while self._shared.poisoned:
            point, error = self._shared.poisoned.pop()
            for run in point.runs:
                if self._store.lookup(run_id(run)) is None:
                    self._store.put(run, Outcome("failed", error=error))

    def _bars(self) -> dict[int, float]:
        """Return {step: value that a run has to reach in order to continue}."""
        trials = [trial for trial in self._shared.frozen() if trial.state == TrialState.COMPLETE]
        begun = [trial.user_attrs.get(BEGUN) for trial in trials]
        return bars([trial.intermediate_values for trial in trials], begun)

    def _begin(self, claim: Claim) -> list[RunConfig]:
        """Register a claimed trial and return its runs that still need training; empty if all are stored."""
        if claim.twin is not None:
            self._over.append((claim, True))
            return []
        self._claims[claim.number] = claim
        missing: list[RunConfig] = []
        for run in claim.point.runs:
            name = run_id(run)
            if self._known(name, claim.retry):
                continue
            if name not in self._awaited:
                missing.append(run)
            self._awaited[name].append(claim.number)
        self._own[claim.number] = [run_id(run) for run in missing]
        if not any(claim.number in numbers for numbers in self._awaited.values()):
            self._over.append((self._claims.pop(claim.number), True))
        return missing

    def _known(self, name: str, retry: bool) -> bool:
        """Return whether the store has a result of the run. With `retry`, only a final status counts, not a failure."""
        record = self._store.lookup(name)
        return record is not None and (record.status in FINAL or not retry)

    def _store_outcomes(self, pool: Pool, pack: Pack, result: Result) -> None:
        """Store the outcomes of a pack, and finish the trials that wait for no other run.

        A pack that ran out of memory is submitted again in two halves.
        """
        if isinstance(result, Failure):
            if result.status == "oom" and len(pack) > 1:
                self._say(f"{len(pack)} runs together do not fit into memory; half of them are trained at a time")
                for half in halves(pack):
                    pool.submit(half, priority=cost(half))
                return
            result = [Outcome(result.status, error=result.error)] * len(pack)
        for run, outcome in zip(pack, result, strict=True):
            name = run_id(run)
            self._store.put(run, outcome)
            self._failures.note(outcome)
            self._spent[name] = outcome.wall_s or 0.0
            for number in self._awaited.pop(name, []):
                if all(number not in numbers for numbers in self._awaited.values()):
                    self._over.append((self._claims.pop(number), False))
                elif self._in_process:
                    self._note_training([number], None)

    def _tell_study(self) -> None:
        """Write to the study how the finished trials ended. If it does not answer, they stay for the next call."""
        while self._over:
            claim, answered = self._over[0]
            own, twin = self._own.get(claim.number, []), claim.twin
            if not own and not answered:  # another trial's claim trained the same runs
                twin, answered = self._shared.twin(claim), True
            end = same_end_as(twin) if twin else self._measured(claim.point.run_ids)
            if own:
                spent = sum(self._spent.get(name, 0.0) for name in own)
                end = replace(end, facts={**(end.facts or {}), "duration_s": spent})
            taken = self._shared.finish(claim, end)
            del self._over[0]
            self._ended(claim, end, taken, answered)

    def _ended(self, claim: Claim, end: End, taken: bool, answered: bool) -> None:
        """Count a trial and report a failure. `taken` is false if another process took the trial over meanwhile."""
        if not taken:
            self._say(f"trial {claim.number} was given up meanwhile, another one replaces it; its runs stay stored")
            return
        self.tally.count(end.status, answered, self._how.limit)
        line = failure_text(claim, end)
        if line and not answered:
            self._say(line)
        self._show_progress()

    def _stored(self, names: Sequence[str], retry: bool) -> End | None:
        """Return how a trial with the run ids `names` ended; `None` if the store lacks one of the runs."""
        if not all(self._known(name, retry) for name in names):
            return None
        end, records = self._measured(names), [self._store.lookup(name) for name in names]
        spent = sum(record.wall_s or 0.0 for record in records if record)
        return replace(end, facts={**(end.facts or {}), "duration_s": spent})

    def _measured(self, names: Iterable[str]) -> End:
        records = [self._store.lookup(name) for name in names]
        return end_of([record for record in records if record], self._store.curve, self._shared.space.objectives)

    def _step(self, pack: Pack, step: int, steps: int) -> None:
        """Write to the study how far a pack's trials are; show the steps if only one trial runs at a time."""
        if self._stage:
            self._stage, self._began = "", time.monotonic()
        if self._in_process and (not steps or time.monotonic() - self._noted > BEAT):
            self._note_training({number for run in pack for number in self._awaited[run_id(run)]}, step / max(1, steps))
        if steps and self._width == 1:
            self._show_progress(step, steps)

    @property
    def _in_process(self) -> bool:
        """Return whether this process trains, so that a death during training ends this process too."""
        return self._count == 1 and not self._how.scheduler

    def _note_training(self, numbers: Iterable[int], share: float | None) -> None:
        self._noted = time.monotonic()
        for number in numbers:
            self._shared.note_training(self._claims[number], share)

    def _show_progress(self, step: int = 0, steps: int = 0) -> None:
        own, most = self.tally.ran.total(), self._shared.most
        done = self._done = self._done if steps else most - self._shared.left()
        seconds = time.monotonic() - self._began

        def ahead() -> Ahead | None:
            if not own:
                return self._predicted.ahead()
            return Ahead(done / max(1, most), seconds / own * max(0, most - done))

        self._progress(Progress(done, most, step, steps, ahead, "trials", stage=lambda: self._stage))

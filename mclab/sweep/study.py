"""Access to a study that several processes share: each trial is claimed by one process, and none is lost.

Everything that changes the state of a trial happens under one lock of the study. A running trial names its owner, the
process that claimed it. If another process finds the owner dead, a new trial takes over the parameters.

Requests are repeated while a database is out of reach. A request may have been executed with only its answer lost: so
each exchange first finds out what is already done, and then does the rest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from mclab.config.strict import ConfigError
from mclab.plan.space import Point, Space
from mclab.plan.space_trials import Status, Trial
from mclab.store.crashes import Death
from mclab.sweep.owner import BEFORE, TRAINING, Owner, Watch, beating, death_attrs, deaths_before, deaths_now, given_up
from mclab.sweep.samplers import sampler, suggest
from mclab.sweep.storage import Retrying, Say, StudyStorage
from mclab.sweep.trials import BEAT, STATES, counted, ours, retried, status, twin
from mclab.workers.signals import interrupts_held

#: The number of refused points in a row after which points are drawn at random, and after which the search ends.
STUBBORN, HOPELESS = 5, 1000


@dataclass(frozen=True)
class Claim:
    """A trial that this process has claimed. `twin` is an earlier trial that has measured the same runs.

    `retry`: the trial took over the parameters of another one. `suspect`: a process died while it trained these
    parameters, so that the trial is trained alone.
    """

    trial: optuna.Trial
    point: Point
    retry: bool
    twin: Trial | None = None
    suspect: bool = False

    @property
    def number(self) -> int:
        """The trial's number."""
        return self.trial.number


@dataclass(frozen=True)
class End:
    """How a claimed trial ended. `looks`: the first objective on valid, by step; `facts`: attributes to write."""

    status: Status
    values: tuple[float, ...] | None = None
    looks: Mapping[int, float] | None = None
    facts: Mapping[str, Any] | None = None


#: A function of run ids and a flag. It returns how a trial with these runs ended; `None` if a run is not stored, or if
#: a run has failed and the flag asks to try failed runs again.
Stored = Callable[[Sequence[str], bool], End | None]


class Shared:
    """The access of one process to a study, of which `asked` trials are to be finished."""

    def __init__(
        self,
        study: optuna.Study,
        space: Space,
        place: StudyStorage,
        asked: int,
        seed: int,
        say: Say,
        patiently: Retrying,
    ) -> None:
        self.study, self.space, self.asked = study, space, asked
        self._place, self._seed, self._say, self._patiently = place, seed, say, patiently
        self.me = Owner.me()
        self._watch = Watch(self.me, lambda name: study.user_attrs.get(f"{BEAT}{name}"))
        self._mine: set[int] = set()
        self._silent = False
        self.poisoned: list[tuple[Point, str]] = []
        self.caught_up: dict[int, Status] = {}
        self._cells = space.listed() if space.sampler == "grid" else []

    @property
    def most(self) -> int:
        """The number of trials to finish; in a grid at most the number of its points."""
        return min(self.asked, len(self._cells)) if self._cells else self.asked

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time run the body, and hold back interrupts meanwhile."""
        with self._place.guard(f"study {self.study.study_name}"), interrupts_held():
            yield

    def _frozen(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def frozen(self) -> list[FrozenTrial]:
        """Optuna's trials, in order of number."""
        return self._patiently(self._frozen)

    def trials(self) -> tuple[Trial, ...]:
        """Return all trials in the form that reports use."""
        found = self.frozen()
        gone = retried(found)
        return tuple(ours(trial, gone) for trial in found)

    def counted(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the finished trials that count. In a grid, these are only trials at its points."""
        found = counted(trials)
        return [trial for trial in found if "cell" in trial.user_attrs] if self._cells else found

    def claim(self, stored: Stored = lambda *_: None) -> Claim | None:
        """Claim a trial; `None` if all are finished or claimed by others. Call again while `open` is true.

        If the runs of a dead process's trial are `stored` here, the trial is ended with their results and added to
        `caught_up`. Raises `ConfigError` if the rules between keys refuse too many points in a row.
        """
        for refused in range(HOPELESS):
            drawn, claim = self._patiently(partial(self._drawn, stored, refused >= STUBBORN))
            if claim is not None or not drawn:
                return claim
        raise ConfigError(f"{HOPELESS} points in a row had keys that contradict each other; narrow the space")

    def _drawn(self, stored: Stored, stubborn: bool) -> tuple[bool, Claim | None]:
        """Return whether one more trial was wanted, and its claim, which is `None` if its point was refused."""
        with self._locked():  # for one point, so that other processes and a Ctrl-C come in between
            self._rescue(stored)
            trials = self._frozen()
            begun = self._begun(trials)
            if begun is None and not self._wanted(trials):
                return False, None
            claim = self._next(trials, begun, stubborn)
            if claim is not None:
                self._mine.add(claim.number)
            return True, claim

    def _wanted(self, trials: Sequence[FrozenTrial]) -> bool:
        running = sum(trial.state == TrialState.RUNNING for trial in trials)
        return len(self.counted(trials)) + running < self.most

    def _begun(self, trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
        """Return a running trial that nobody has claimed, if any: its process died, or its exchange was interrupted."""
        for trial in trials:
            if trial.state == TrialState.RUNNING and trial.number not in self._mine:
                owner = trial.user_attrs.get("owner")
                if owner is None or owner == self.me.as_dict():
                    return trial
        return None

    def left(self) -> int:
        """Return how many trials are still to be finished."""
        return max(0, self.most - len(self.counted(self.frozen())))

    def open(self) -> bool:
        """Return whether trials are still running or waiting, in any process."""
        return self.left() > 0 and any(not trial.state.is_finished() for trial in self.frozen())

    def _next(self, trials: Sequence[FrozenTrial], begun: FrozenTrial | None, stubborn: bool) -> Claim | None:
        """Claim `begun`, or the next trial; `None` if its point is refused. `stubborn` draws the point at random."""
        if not begun and self._cells and all(trial.state != TrialState.WAITING for trial in trials):
            self._enqueue_cell(trials)
        name = "random" if stubborn else self.space.sampler
        self.study.sampler = sampler(name, self._seed, begun.number if begun else len(trials))
        trial = optuna.Trial(self.study, begun._trial_id) if begun else self.study.ask()
        trial.set_user_attr("owner", self.me.as_dict())
        trial.set_user_attr("sampler", name)
        params = suggest(trial, self.space)
        try:
            point = self.space.point(params)
        except ConfigError as error:
            self._end(trial.number, trial._trial_id, End("refused", facts={"error": str(error)}))
            return None
        trial.set_user_attr("run_ids", list(point.run_ids))
        if point.inert:
            trial.set_user_attr("inert", list(point.inert))
        before, again = twin(point.run_ids, trials), "retry_of" in trial.user_attrs
        suspect = BEFORE in trial.user_attrs
        return Claim(trial, point, again, ours(before, set()) if before else None, suspect)

    def twin(self, claim: Claim) -> Trial | None:
        """Return the trial that has measured the claim's runs by now; `None` if there is none."""
        found = twin(claim.point.run_ids, self.frozen())
        return ours(found, set()) if found else None

    def _enqueue_cell(self, trials: Sequence[FrozenTrial]) -> None:
        """Enqueue the first point of the grid that no trial has."""
        taken = {trial.user_attrs.get("cell") for trial in trials}
        number = next(number for number in range(len(self._cells)) if number not in taken)
        self.study.enqueue_trial(self._cells[number], user_attrs={"cell": number})

    def finish(self, claim: Claim, end: End) -> bool:
        """Write to the study how a claim ended; return `False` if the claim was given up meanwhile."""
        return self._patiently(lambda: self._finished(claim, end))

    def _finished(self, claim: Claim, end: End) -> bool:
        with self._locked():
            now = self.study._storage.get_trial(claim.trial._trial_id)
            if now.user_attrs.get("owner") != self.me.as_dict():
                return False
            if now.state != TrialState.RUNNING:  # ended by an exchange whose answer was lost, or given up
                return now.state.is_finished() and status(now) == end.status
            self._end(claim.number, claim.trial._trial_id, end)
            return True

    def _end(self, number: int, trial_id: int, end: End) -> None:
        storage = self.study._storage
        if end.looks and len(self.study.directions) == 1:
            for step, value in end.looks.items():
                storage.set_trial_intermediate_value(trial_id, step, value)
        facts = {"status": end.status, **(end.facts or {})}
        for key, value in facts.items():
            if value is not None:
                storage.set_trial_user_attr(trial_id, key, value)
        self.study.tell(number, end.values, state=STATES.get(end.status, TrialState.FAIL))

    def _rescue(self, stored: Stored) -> None:
        """End the trials of dead processes if their runs are stored or died too often; pass on the others."""
        for trial in self._frozen():
            owner = Owner.of(trial.user_attrs.get("owner"))
            if trial.state != TrialState.RUNNING or owner is None or not self._watch.dead(owner):
                continue
            gone = f"trial {trial.number}: {owner.in_words()} is gone"
            runs, death = trial.user_attrs.get("run_ids"), deaths_now(trial, owner, self.me)
            if runs and (end := stored(runs, "retry_of" in trial.user_attrs)):
                self.caught_up[trial.number] = end.status
                self._end(trial.number, trial._trial_id, end)
                self._say(f"{gone}; its runs are stored, so the trial is entered into the study as {end.status}")
            elif error := given_up(death):
                self.poisoned.append((self.space.point(trial.params), error))
                self._end(trial.number, trial._trial_id, End("failed", facts={"error": error}))
                self._say(f"trial {trial.number} has failed: {error}")
            else:
                self._pass_on(trial, death)
                self._say(f"{gone}; another trial takes over its parameters")

    def note_training(self, claim: Claim, share: float | None) -> None:
        """Write to the study that this process trains a trial and how far it is; with `share=None`, that it stopped."""
        if self._silent:
            return
        with interrupts_held(), suppress(Exception):  # a failure to write this is no reason to stop training
            self.study._storage.set_trial_user_attr(claim.trial._trial_id, TRAINING, share)

    def _pass_on(self, trial: FrozenTrial, death: Death, ended: bool = False) -> None:
        """Enqueue a new trial with the same parameters, and then end the old one, unless it has `ended`.

        If the process is killed in between, the next process finds the new trial and only ends the old one.
        """
        params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        if trial.number not in retried(self._frozen()):
            cell = {"cell": trial.user_attrs["cell"]} if "cell" in trial.user_attrs else {}
            self.study.enqueue_trial(params, user_attrs={"retry_of": trial.number, **cell, **death_attrs(death)})
        if not ended:
            self._end(trial.number, trial._trial_id, End("lost"))

    def release(self) -> int:
        """Give up the trials of this process, so that others take over their parameters. Return how many there were."""
        with self._locked():
            own = [trial for trial in self._frozen() if trial.state == TrialState.RUNNING]
            own = [trial for trial in own if trial.user_attrs.get("owner") == self.me.as_dict()]
            for trial in own:
                self._pass_on(trial, deaths_before(trial))
            return len(own)

    def retry_failed(self) -> int:
        """Enqueue failed and out-of-memory trials again and raise `asked` to reach them all; return their number."""
        tried = set[int]()
        self._patiently(lambda: self._retry_failed(tried))
        return len(tried)

    def _retry_failed(self, tried: set[int]) -> None:
        with self._locked():
            over = self.counted(self._frozen())
            failed = [trial for trial in over if status(trial) in ("failed", "oom")]
            if failed:
                self.asked = max(self.asked, len(over))
            for trial in failed:
                tried.add(trial.number)
                self._pass_on(trial, Death(), ended=True)

    def beating(self) -> AbstractContextManager[None]:
        """Increase this process's number in the study while the body runs."""
        return beating(self._beat)

    def _beat(self, count: int) -> None:
        """Write this process's number to the study. If that fails, forget what others wrote before."""
        try:
            self.study.set_user_attr(f"{BEAT}{self.me.name}", count)
        except Exception:
            self._silent = True
            self._watch.forget()
            raise
        self._silent = False

"""A study that several processes share: each trial claimed once, exactly as many as were asked for, none lost.

Everything that changes a trial's state happens under one lock of the study. A trial that runs is its own claim: it
names its owner, and whoever finds the owner dead gives it up and lets another trial take over its parameters.
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from mclab.config.strict import ConfigError
from mclab.plan.space import Point, Space, changes, completed
from mclab.plan.space_trials import Status, Trial
from mclab.store.flight import Death
from mclab.sweep import deaths
from mclab.sweep.facts import BEAT, SPACE, STATES, counted, ours, retried, status, twin
from mclab.sweep.owner import Owner, Watch, beating
from mclab.sweep.samplers import sampler
from mclab.sweep.suggest import suggest
from mclab.workers.signals import interrupts_held

#: Refused points in a row after which a point is drawn at random, and after which the search is given up.
STUBBORN, HOPELESS = 5, 1000
Say = Callable[[str], None]


class Place(Protocol):
    """Where studies are kept."""

    @property
    def told(self) -> str:
        """Where that is, to be read."""

    def open(self) -> BaseStorage:
        """Optuna's storage."""

    def guard(self, what: str) -> AbstractContextManager[None]:
        """One process at a time."""

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True)
class Claim:
    """A trial that this process has taken on; `twin` is one that has measured the same runs before.

    A `suspect` was in training when a process died: it shall train alone.
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
    """How a claimed trial ended, and what is written beside it. `looks` are steps and what valid was there."""

    status: Status
    values: tuple[float, ...] | None = None
    looks: Mapping[int, float] | None = None
    facts: Mapping[str, Any] | None = None


class Shared:
    """One process's hold on a study in which `asked` trials are to be finished."""

    def __init__(self, study: optuna.Study, space: Space, place: Place, asked: int, seed: int, say: Say) -> None:
        self.study, self.space, self.asked = study, space, asked
        self._place, self._seed, self._say = place, seed, say
        self.me = Owner.me()
        self._watch = Watch(self.me, lambda name: study.user_attrs.get(f"{BEAT}{name}"))
        self.poisoned: list[tuple[Point, str]] = []
        self._cells = space.listed() if space.sampler == "grid" else []

    @property
    def most(self) -> int:
        """Trials to finish: a grid has no more than its points."""
        return min(self.asked, len(self._cells)) if self._cells else self.asked

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time, and no interrupt in the middle of it."""
        with self._place.guard(f"study {self.study.study_name}"), interrupts_held():
            yield

    def frozen(self) -> list[FrozenTrial]:
        """Optuna's trials, in order of number."""
        return self.study.get_trials(deepcopy=False)

    def trials(self) -> tuple[Trial, ...]:
        """All trials, as reports see them."""
        found = self.frozen()
        gone = retried(found)
        return tuple(ours(trial, gone) for trial in found)

    def counted(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """The trials that are over and count; of a grid those at its points, whatever was searched before."""
        found = counted(trials)
        return [trial for trial in found if "cell" in trial.user_attrs] if self._cells else found

    def claim(self) -> Claim | None:
        """Take on a trial; `None` where all are finished or taken by others. Ask again while `open` says so."""
        for refused in range(HOPELESS):
            with self._locked():  # by the point: others, and a Ctrl-C, get in between
                self._rescue()
                trials = self.frozen()
                if not self._wanted(trials):
                    return None
                claim = self._next(trials, stubborn=refused >= STUBBORN)
            if claim is not None:
                return claim
        raise ConfigError(f"{HOPELESS} points in a row broke the rules between keys; narrow the space")

    def _wanted(self, trials: Sequence[FrozenTrial]) -> bool:
        running = sum(trial.state == TrialState.RUNNING for trial in trials)
        return len(self.counted(trials)) + running < self.most

    def left(self) -> int:
        """Trials that are not finished yet."""
        return max(0, self.most - len(self.counted(self.frozen())))

    def open(self) -> bool:
        """Whether trials are still running or waiting, here or elsewhere."""
        return self.left() > 0 and any(not trial.state.is_finished() for trial in self.frozen())

    def _next(self, trials: Sequence[FrozenTrial], stubborn: bool) -> Claim | None:
        """The next trial; `None` for one whose point is refused."""
        if self._cells and all(trial.state != TrialState.WAITING for trial in trials):
            self._enqueue_cell(trials)
        name = "random" if stubborn else self.space.sampler
        self.study.sampler = sampler(name, self._seed, len(trials))
        trial = self.study.ask()
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
        suspect = deaths.BEFORE in trial.user_attrs
        return Claim(trial, point, again, ours(before, set()) if before else None, suspect)

    def twin(self, claim: Claim) -> Trial | None:
        """The trial that has measured the claim's runs by now."""
        found = twin(claim.point.run_ids, self.frozen())
        return ours(found, set()) if found else None

    def _enqueue_cell(self, trials: Sequence[FrozenTrial]) -> None:
        """The first point of the grid that no trial has."""
        taken = {trial.user_attrs.get("cell") for trial in trials}
        number = next(number for number in range(len(self._cells)) if number not in taken)
        self.study.enqueue_trial(self._cells[number], user_attrs={"cell": number})

    def finish(self, claim: Claim, end: End) -> bool:
        """Tell the study. `False` where the trial was given up meanwhile: then another has its parameters."""
        with self._locked():
            now = self.study._storage.get_trial(claim.trial._trial_id)
            if now.state != TrialState.RUNNING or now.user_attrs.get("owner") != self.me.as_dict():
                return False
            if end.looks and len(self.study.directions) == 1:
                for step, value in end.looks.items():
                    claim.trial.report(value, step)
            self._end(claim.number, claim.trial._trial_id, end)
            return True

    def _end(self, number: int, trial_id: int, end: End) -> None:
        facts = {"status": end.status, **(end.facts or {})}
        for key, value in facts.items():
            if value is not None:
                self.study._storage.set_trial_user_attr(trial_id, key, value)
        self.study.tell(number, end.values, state=STATES.get(end.status, TrialState.FAIL))

    def _rescue(self) -> None:
        """Give up the trials of dead processes, and let others take over their parameters."""
        for trial in self.frozen():
            if trial.state == TrialState.RUNNING:
                owner = Owner.of(trial.user_attrs.get("owner"))
                if not self._watch.dead(owner):
                    continue
                death = deaths.now(trial, owner, self.me)
                if error := deaths.error(death):
                    self._end(trial.number, trial._trial_id, End("failed", facts={"error": error}))
                    self.poisoned.append((self.space.point(trial.params), error))
                    self._say(f"trial {trial.number}: failed: {error}")
                    continue
                self._pass_on(trial, death)
                who = owner.told() if owner else "its process"
                self._say(f"trial {trial.number}: {who} is gone; another trial takes over its parameters")

    def trains(self, claim: Claim, share: float | None) -> None:
        """Write down that this very process trains a trial and how far it is; `None`: it does so no more."""
        with interrupts_held(), suppress(Exception):  # as a sign of life: no reason to stop training
            self.study._storage.set_trial_user_attr(claim.trial._trial_id, deaths.TRAINING, share)

    def _pass_on(self, trial: FrozenTrial, death: Death, ended: bool = False) -> None:
        """A new trial with the same parameters, then the end of the old one: killed between, the next sees it."""
        params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        if trial.number not in retried(self.frozen()):
            cell = {"cell": trial.user_attrs["cell"]} if "cell" in trial.user_attrs else {}
            self.study.enqueue_trial(params, user_attrs={"retry_of": trial.number, **cell, **deaths.attrs(death)})
        if not ended:
            self._end(trial.number, trial._trial_id, End("lost"))

    def release(self) -> int:
        """Give up this process's own trials, as `_rescue` would; how many there were."""
        with self._locked():
            own = [trial for trial in self.frozen() if trial.state == TrialState.RUNNING]
            own = [trial for trial in own if trial.user_attrs.get("owner") == self.me.as_dict()]
            for trial in own:
                self._pass_on(trial, deaths.before(trial))
            return len(own)

    def retry_failed(self) -> int:
        """Try again what failed or ran out of memory, however few trials are asked for; how many trials that is."""
        with self._locked():
            over = self.counted(self.frozen())
            failed = [trial for trial in over if status(trial) in ("failed", "oom")]
            if failed:
                self.asked = max(self.asked, len(over))
            for trial in failed:
                self._pass_on(trial, Death(), ended=True)
            return len(failed)

    def beating(self) -> AbstractContextManager[None]:
        """Count up in the study while the body runs."""
        return beating(lambda count: self.study.set_user_attr(f"{BEAT}{self.me.name}", count))


def open_study(name: str, space: Space, place: Place, asked: int, seed: int, say: Say) -> Shared:
    """The study of this name, made where there is none, with the base as its first trial.

    Several processes may do so at once. Raises `ConfigError` where the study searches another space, naming what
    differs, or is none of mclab's.
    """
    told = json.loads(json.dumps(space.describe()))
    with place.guard("studies"):
        storage = place.open()
        names = [each.study_name for each in storage.get_all_studies()]
        directions = [each.direction for each in space.objectives]
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            directions=directions,
            load_if_exists=True,
            pruner=optuna.pruners.NopPruner(),
        )
        before, trials = study.user_attrs.get(SPACE), study.get_trials(deepcopy=False)
        if before is None and (
            trials or study.user_attrs or [each.name.lower() for each in study.directions] != directions
        ):
            raise ConfigError(f"{place.told}: study {name} is not mclab's; give another --study")
        if before is None:
            _name(study, space, told)
        elif (then := completed(before, told)) != told:
            raise ConfigError(_changed(name, place, changes(then, told), names))
        if not trials and space.sampler != "grid":
            study.enqueue_trial(dict(space.start))
    return Shared(study, space, place, asked, seed, say)


def _name(study: optuna.Study, space: Space, told: Mapping[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of objectives are experimental
        study.set_metric_names([each.metric for each in space.objectives])
    study.set_user_attr(SPACE, told)


def _changed(name: str, place: Place, lines: Sequence[str], names: Sequence[str]) -> str:
    number = 2
    while f"{name}-{number}" in names:
        number += 1
    more = f"; and {len(lines) - 4} more" if len(lines) > 4 else ""
    return (
        f"{place.told}: study {name} searches another space: {'; '.join(lines[:4])}{more}; "
        f"change it back, or begin a new study: --study {name}-{number}"
    )

"""Spaces, a training that learns nothing, and studies without a command line."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial

from mclab.config.ids import run_id
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig
from mclab.plan.space import Space
from mclab.plan.space_load import load_space
from mclab.sweep.journal import Journal
from mclab.sweep.open_study import open_study
from mclab.sweep.owner import Owner
from mclab.sweep.storage import StudyStorage
from mclab.sweep.study import Claim, End, Shared
from tests.stored import measured

BASE = """
base:
  task: {vocab: 16, length: 16, pairs: [1, 2]}
  model: {dim: 8, layers: 1, mixer: {segment: 4}}
  train: {steps: 4, batch: 8}
  eval: {valid: 8, test: 16, every: 2}
"""
#: A continuum, with a key that is not at every point.
SPACE = f"""{BASE}
space:
  model.mixer.gate: [context, input, none]
  model.mixer.aggregate: [grm, ssc]
  model.mixer.k: {{low: 1, high: 3}}
  train.lr: {{low: 1.0e-3, high: 1.0e-1, log: true}}
when: {{model.mixer.k: {{model.mixer.aggregate: ssc}}}}
sampler: random
"""
#: Twelve points, all of them different runs.
TWELVE = f"""{BASE}
space:
  model.mixer.gate: [context, input]
  model.mixer.init: [restart, checkpoint]
  train.lr: [1.0e-3, 1.0e-2, 1.0e-1]
"""
#: Six points.
SIX = f"""{BASE}
space:
  model.mixer.gate: [context, input, none]
  train.lr: [1.0e-3, 1.0e-2]
sampler: grid
"""


def space_file(folder: Path, text: str = SPACE, name: str = "s.yaml") -> Path:
    """A space in a file."""
    path = folder / name
    path.write_text(text)
    return path


def a_space(folder: Path, text: str = SPACE, **options: Any) -> Space:
    """A space as it is loaded."""
    return load_space(space_file(folder, text), **options)


def trials(out: Path) -> list[dict[str, Any]]:
    """What `trials.json` holds."""
    found: list[dict[str, Any]] = json.loads((out / "trials.json").read_text())["trials"]
    return found


@dataclass
class FakeTraining:
    """Trains nothing and says what it was asked for. `statuses` are ends by run id, all others are done.

    `chance` is what is had without recall, where it is known.
    """

    asked: list[str] = field(default_factory=list)
    packs: list[int] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)
    score: Callable[[RunConfig], float] = lambda run: min(1.0, 10 * run.train.lr)
    before: Callable[[RunConfig], None] = lambda run: None
    chance: float | None = None

    def __call__(
        self,
        runs: Sequence[RunConfig],
        *,
        device: str,
        progress: Any = None,
        keep: Any = None,
        on_evaluation: Callable[[int, Sequence[Mapping[str, Score]]], Sequence[bool]] | None = None,
    ) -> list[Outcome]:
        """As `mclab.train.train_pack`."""
        self.packs.append(len(runs))
        for run in runs:
            self.before(run)
            self.asked.append(run_id(run))
        curves = [self.curve(run) for run in runs]
        pruned = [False] * len(runs)
        for place in range(len(curves[0]) - 1 if on_evaluation else 0):
            scores = [{ALL: Score(**curve[place]["valid"][ALL])} for curve in curves]
            pruned = [before or not goes for before, goes in zip(pruned, on_evaluation(place + 1, scores), strict=True)]
        return [self.outcome(run, curve, gone) for run, curve, gone in zip(runs, curves, pruned, strict=True)]

    def curve(self, run: RunConfig) -> tuple[dict[str, Any], ...]:
        """Two looks, the second better."""
        values = [self.score(run) / 2, self.score(run)]
        return tuple(
            {"step": step, "valid": {ALL: {"accuracy": value, "loss": 1 - value}}}
            for step, value in enumerate(values, 1)
        )

    def outcome(self, run: RunConfig, curve: tuple[dict[str, Any], ...], pruned: bool) -> Outcome:
        """Done, unless `statuses` say otherwise."""
        status: Any = "pruned" if pruned else self.statuses.get(run_id(run), "done")
        score = measured(run, self.score(run), 1 - self.score(run)) if status == "done" else {}
        error = "broken on purpose" if status == "failed" else None
        return Outcome(
            status, 4, score, score, params=100, state_fixed=10 * run.model.dim, state_cached=0, tokens_per_s=1.0,
            wall_s=1.0, diverged_step=3 if status == "diverged" else None, error=error, curve=curve,
            without_recall=None if self.chance is None else {ALL: {"any value": self.chance}},
        )  # fmt: skip


def shared(
    place: StudyStorage, space: Space, asked: int = 10, name: str = "s", said: list[str] | None = None
) -> Shared:
    """This process's hold on a study."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return open_study(name, space, place, asked, 0, (said if said is not None else []).append)


def journal(folder: Path) -> Journal:
    """A journal of its own hold: another object for the same file is as another process."""
    return Journal(folder / "journal.log", lambda line: None)


def done(claim: Claim, value: float = 0.5) -> End:
    """The end of a trial that went well."""
    return End("done", (value,), {2: value}, {"metrics": {"valid.accuracy": value}})


def work_off(study: Shared, ended: list[int]) -> None:
    """Claim and finish until nothing is left."""
    while True:
        claim = study.claim()
        if claim is None:
            if not study.open():
                return
            threading.Event().wait(0.01)  # another has the last ones
            continue
        if study.finish(claim, done(claim, 0.1)):
            ended.append(claim.number)


def together(*works: Callable[[], object]) -> None:
    """Run in threads that start at the same moment; what one raises is raised."""
    gate, faults = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        gate.wait()
        try:
            work()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def elsewhere(study: Shared) -> Owner:
    """The study's hold, as if it were on another machine."""
    study.me = replace(study.me, host="elsewhere", place="another boot")
    return study.me


def frozen(place: StudyStorage, name: str = "s") -> list[FrozenTrial]:
    """The study's trials, read as anybody may: without a lock, which a process that is stopped might hold."""
    if isinstance(place, Journal):
        return optuna.load_study(
            study_name=name, storage=JournalStorage(JournalFileBackend(str(place.path)))
        ).get_trials()
    storage = place.open()
    try:
        return optuna.load_study(study_name=name, storage=storage).get_trials()
    finally:  # who waits for a trial asks fifty times a second, and a server has a hundred connections
        assert isinstance(storage, RDBStorage)
        storage.remove_session()
        storage.engine.dispose()

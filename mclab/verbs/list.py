"""`mclab list`: list the run folders below `runs`, or the stored runs of one folder, as dictionaries."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mclab.config.ids import UNSCIENTIFIC, inert
from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun, StoredScore
from mclab.config.strict import ConfigError, leaves
from mclab.plan.plan import Plan, workload
from mclab.plan.space_trials import Trials
from mclab.report.text import column_names
from mclab.store import SPACE, Records
from mclab.sweep.cost import finished
from mclab.verbs.load import trial_of, trials

#: The figures of a record that a listing shows in addition to the scores, under the column names of runs.csv.
FIGURES: dict[str, Callable[[StoredRun], object]] = {
    "steps_done": lambda record: record.steps,
    "steps_to_99": lambda record: record.steps_to_99,
    "diverged_step": lambda record: record.diverged_step,
    "params": lambda record: record.params,
    "tokens_per_s": lambda record: record.tokens_per_s,
    "wall_s": lambda record: record.wall_s,
    "error": lambda record: record.error,
}


#: Folders within a run folder that cannot contain run folders.
_INSIDE = ("records", "curves", "tables", "plots", "weights", "checkpoints")


@dataclass(frozen=True)
class _Run:
    """A stored run: its record, its keys, and the name of its cell or the number of its trial.

    The values in `keys` are as the grid or space writes them; other keys are as in the record.
    """

    record: StoredRun
    keys: Mapping[str, Any]
    cell: str | None = None
    trial: int | None = None


def listing(records: Records, plan: Plan | None, study: Trials | None = None) -> list[dict[str, Any]]:
    """Return a dictionary for each stored run: id, status, seed, the keys that vary, the metrics.

    The runs of the plan or of the study come first, in its order, then all other records. A key is named by the last
    part of its path, as in the tables; what a run does not have is `None`. In a study, the number of the trial follows
    the seed.
    """
    stored = {record.run_id: record for record in records.scan()}
    runs = list(_planned(plan, stored)) if plan else list(_searched(study, stored)) if study else []
    known = {run.record.run_id for run in runs}
    others = [_Run(record, _live(_config(record))) for name, record in stored.items() if name not in known]
    names = column_names(_varied(_axes(plan, study), [*runs, *others] if others else []))
    return [_row(run, names, bool(plan and plan.named), study is not None) for run in [*runs, *others]]


def folders(runs: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return a dictionary for each run folder below `runs`, sorted by name.

    It has kind, question, how many of the planned runs or trials are stored, and the day of the last record. What
    cannot be read is `None`, and the reason is passed to `say`.
    """
    found = []
    for place, names, files in os.walk(runs):
        if not {"plan.json", "trials.json", SPACE}.isdisjoint(files) or "records" in names:
            found.append(_folder(Path(place), say))
        names[:] = sorted(name for name in names if name not in _INSIDE)
    return found


def _folder(path: Path, say: Callable[[str], None]) -> dict[str, Any]:
    stored = {record.stem: record.stat().st_mtime for record in (path / "records").glob("*.json")}
    kind = _kind(path)
    question, done, planned = None, 0 if kind == "sweep" else len(stored), None
    try:
        if (study := trials(path)) is not None:
            question, done, planned = study.question, finished(path, study.study), study.asked
        elif (plan := Records(path, say=say).plan()) is not None:
            ids = {name for cell in plan.cells for each in cell.candidates for name in each.run_ids().values()}
            if kind == "train":  # the plan is the last command's alone, and earlier ones stored their runs here too
                question, planned = plan.question, len(ids | stored.keys())
            else:
                question, done, planned = plan.question, len(ids & stored.keys()), workload(plan).runs
    except ConfigError as error:
        say(str(error))
    last = f"{datetime.fromtimestamp(max(stored.values()), UTC):%Y-%m-%d}" if stored else None
    return {
        "folder": str(path),
        "kind": kind,
        "question": question,
        "stored": done,
        "planned": planned,
        "of": "trials" if kind == "sweep" else "runs",
        "date": last,
    }


def _kind(path: Path) -> str:
    """Return the kind of a run folder:

    `grid` (of `mclab ablate`), `train`, `sweep`, or `runs` if it has only records.
    """
    if (path / "plan.json").exists():
        return "grid" if (path / "grid.yaml").exists() else "train"
    return "sweep" if (path / SPACE).exists() or (path / "trials.json").exists() else "runs"


def readable(records: Records, say: Callable[[str], None]) -> tuple[Plan | None, Trials | None]:
    """Return the plan and the study that the records belong to; each is `None` if the folder has none.

    If one cannot be read, both are `None`, and `say` gets the reason: the records can be listed without them.
    """
    try:
        return records.plan(), trials(records.path)
    except ConfigError as error:
        say(f"{error}; the list is made from the records alone")
        return None, None


def _planned(plan: Plan, stored: Mapping[str, StoredRun]) -> Iterator[_Run]:
    """Yield every stored run of the plan once, under the first cell that has it."""
    seen: set[str] = set()
    for cell in plan.cells:
        for candidate in cell.candidates:
            for seed, name in candidate.run_ids().items():
                if name in stored and name not in seen:
                    seen.add(name)
                    keys = {**_live(candidate.runs[seed]), **cell.values, **candidate.values}
                    yield _Run(stored[name], keys, cell.name)


def _searched(study: Trials, stored: Mapping[str, StoredRun]) -> Iterator[_Run]:
    """Yield every stored run of the study once, under the trial that it was trained for."""
    of = trial_of(study)
    for trial in study.trials:
        for name in trial.run_ids:
            if of[name] == trial.number and name in stored:
                searched = {path: value for path, value in trial.params.items() if path not in trial.inert}
                keys = {**_live(_config(stored[name])), **searched}
                yield _Run(stored[name], keys, trial=trial.number)


def _config(record: StoredRun) -> RunConfig:
    assert record.config is not None, "a scan leaves out what is no run in this version"
    return record.config


def _live(run: RunConfig) -> dict[str, Any]:
    """Return {path: value} for the run's keys, without the seed and without keys that have no effect."""
    dead = inert(run) | UNSCIENTIFIC
    return {path: value for path, value in leaves(run) if path != "seed" and path not in dead}


def _axes(plan: Plan | None, study: Trials | None) -> list[str]:
    """Return the paths of the keys that the plan varies or chooses (`select`), or over which the study searches."""
    if plan is None:
        return [axis.path for axis in study.axes] if study else []
    return [*plan.axes, *(plan.select.over if plan.select else ())]


def _varied(own: Sequence[str], runs: Sequence[_Run]) -> list[str]:
    """Return the paths in `own`, then those of all other keys that differ among `runs`."""
    paths = dict.fromkeys(path for run in runs for path in run.keys)
    return [*own, *(path for path in paths if path not in own and _differs(path, runs))]


def _differs(path: str, runs: Sequence[_Run]) -> bool:
    return len({json.dumps(run.keys.get(path)) for run in runs}) > 1


def _row(run: _Run, names: Mapping[str, str], named: bool, searched: bool) -> dict[str, Any]:
    record = run.record
    return {
        "run_id": record.run_id,
        "status": record.status,
        "seed": record.seed,
        **({"trial": run.trial} if searched else {}),
        **({"name": run.cell} if named else {}),
        **{name: run.keys.get(path) for path, name in names.items()},
        **_scores("valid", record.valid.get(ALL)),
        **_scores("test", record.test.get(ALL)),
        **{name: figure(record) for name, figure in FIGURES.items()},
    }


def _scores(split: str, score: StoredScore | None) -> dict[str, float | None]:
    accuracy, loss = (score.accuracy, score.loss) if score else (None, None)
    return {f"{split}_accuracy": accuracy, f"{split}_loss": loss}

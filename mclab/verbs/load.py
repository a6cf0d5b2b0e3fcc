"""`mclab.load`: read a run folder: its runs and curves as data frames, its plan, or the trials of a search."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.atomic_files import read_whole
from mclab.config.error import suggestion
from mclab.config.outcome import ALL
from mclab.config.strict import ConfigError
from mclab.plan.plan import Plan
from mclab.plan.space_trials import Trials, from_dict
from mclab.store import SPACE, Records
from mclab.store.files import plainly
from mclab.store.folder import to_stderr

if TYPE_CHECKING:
    import polars as pl

#: The most folders that a message suggests.
_MOST_NAMED = 3


def frame(folder: str | Path) -> "pl.DataFrame":
    """Return a frame with one row per stored run.

    With a plan it is that of `runs.csv`, else it has each record with its keys. For a search the column `trial` has the
    number of each run's trial. Raises `ConfigError` if the folder does not exist or holds no records, or if its plan or
    its trials are damaged.
    """
    records = opened(Path(folder), "records")
    plan = records.plan()
    if plan is None:
        return _with_trials(records.scan_frame(), trials(records.path))
    from mclab.report.table.frames import runs_frame

    return runs_frame(plan, records.lookup)


def curves(folder: str | Path) -> "pl.DataFrame":
    """Return a frame with one row per evaluation of each stored run, sorted by run id (see `mclab.load_curves`).

    Raises `ConfigError` if the folder does not exist or holds no records.
    """
    import polars as pl

    records = opened(Path(folder), "records")
    rows = [
        {"run_id": run.run_id, "seed": run.seed, **dict(_columns(look))}
        for run in records.scan()
        for look in records.curve(run.run_id)
    ]
    return pl.from_dicts(rows, infer_schema_length=None, strict=False) if rows else pl.DataFrame()


def _columns(look: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield from ((key, value) for key, value in look.items() if key != "valid")
    for name, score in (look.get("valid") or {}).items():
        suffix = "" if name == ALL else f"[{name}]"
        yield from ((f"valid_{metric}{suffix}", value) for metric, value in score.items())


def opened(folder: Path, *needed: str, say: Callable[[str], None] = to_stderr) -> Records:
    """Return the records of a run folder. It must hold at least one of the files or folders in `needed`.

    Raises `ConfigError` if it holds none of them, and suggests a folder below it that does.
    """
    records = Records(folder, say=say)
    if any((folder / name).exists() for name in needed):
        return records
    if "trials.json" in needed and (folder / SPACE).exists():
        raise ConfigError(f"{folder}: there is no trials.json yet; the sweep writes it when it ends or is interrupted")
    near = sorted({str(path.parent) for name in needed for path in folder.glob(f"*/{name}")})[:_MOST_NAMED]
    hint = suggestion(near) or "give the --out of an ablate, train or sweep command"
    raise ConfigError(f"{folder}: this folder holds no {' and no '.join(needed)}; {hint}")


def planned(folder: Path, say: Callable[[str], None]) -> tuple[Plan, Records]:
    """Return the plan and the records of a grid's run folder. Call it only if `trials` returns `None`.

    Raises `ConfigError` for a folder that holds neither a grid nor a search.
    """
    records = opened(folder, "plan.json", "trials.json", say=say)
    plan = records.plan()
    assert plan is not None, "a folder without trials.json holds a plan"
    return plan, records


def _with_trials(found: "pl.DataFrame", study: Trials | None) -> "pl.DataFrame":
    if study is None or found.is_empty():
        return found
    import polars as pl

    of = trial_of(study)
    numbers = [of.get(run) for run in found["run_id"]]
    return found.insert_column(found.columns.index("seed") + 1, pl.Series("trial", numbers, dtype=pl.Int64))


def trials(folder: Path) -> Trials | None:
    """Return the trials of a search's run folder, as its last command stored them; `None` for any other folder.

    Raises `ConfigError` if `trials.json` is damaged.
    """
    path = folder / "trials.json"
    if (folder / "plan.json").exists() or not path.exists():
        return None
    with plainly(path, "read"):
        data = read_whole(path)
    try:
        return from_dict(json.loads(data.decode()), str(path))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ConfigError(
            f"{path}: the file is no valid JSON (damaged or cut off); the same mclab sweep command writes it again"
        ) from None


def trial_of(study: Trials) -> dict[str, int]:
    """Return {run id: number of the trial that the run was trained for}.

    If several trials have the same run, trials that count and were not retried are preferred, then trials that do not
    repeat another one, then the one with the lowest number.
    """
    taken = {trial.retry_of for trial in study.trials}
    by_right = sorted(
        study.trials,
        key=lambda trial: (not trial.counts or trial.number in taken, trial.repeat_of is not None, trial.number),
    )
    found: dict[str, int] = {}
    for trial in by_right:
        for run in trial.run_ids:
            found.setdefault(run, trial.number)
    return found

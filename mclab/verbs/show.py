"""`mclab show`: find a run by the first digits of its id, and return all that is stored of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mclab.config.ids import inert, written
from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun, StoredScore
from mclab.config.strict import ConfigError
from mclab.store import Records
from mclab.store.find import Stored, find_run
from mclab.store.record import figures_of
from mclab.verbs.load import trial_of, trials


@dataclass(frozen=True)
class Found:
    """The record of a run, the run folder that holds it, its curve, and in a search the number of its trial."""

    folder: Path
    record: StoredRun
    curve: Sequence[Mapping[str, Any]]
    trial: int | None = None


def find(run: str, folder: Path | None, say: Callable[[str], None]) -> Found:
    """Return the one run whose id begins with `run` (see `mclab.store.find.find_run`). Raises `ConfigError`."""
    stored = find_run(run, folder, say)
    records = Records(stored.folder, say=say)
    record = records.lookup(stored.run_id)
    if record is None:
        raise ConfigError(f"{stored.folder}: the record of run {stored.run_id} is damaged")
    return Found(stored.folder, record, records.curve(stored.run_id), _trial(stored, say))


def _trial(stored: Stored, say: Callable[[str], None]) -> int | None:
    try:
        study = trials(stored.folder)
    except ConfigError as error:
        say(str(error))
        return None
    return trial_of(study).get(stored.run_id) if study else None


def as_dict(found: Found) -> dict[str, Any]:
    """Return for JSON the stored record with folder and curve; `differs` lists the keys not at their defaults."""
    record = found.record
    own, rest = keys_of(record)
    return {
        "folder": str(found.folder),
        **({} if found.trial is None else {"trial": found.trial}),
        **figures_of(record),
        "run_id": record.run_id,
        "science": record.science,
        "seed": record.seed,
        **{key: dict(moved) for key in ("versions", "words") if (moved := getattr(record, key))},
        **{key: known for key in ("curve_sha256", "sha256") if (known := getattr(record, key))},
        **record.unknown,
        "config": {**own, **rest},
        "differs": list(own),
        "curve": list(found.curve),
    }


def keys_of(record: StoredRun) -> tuple[dict[str, object], dict[str, object]]:
    """Return two mappings of paths to values: the keys that differ from their defaults, and all other keys.

    The second has the keys at their defaults and those without effect in this run. It is empty for a record of another
    science version, whose keys are all in the first.
    """
    stored = {path: value for path, value in record.keys.items() if path != "seed"}
    if record.config is None:  # the keys of another science version cannot be compared with today's defaults
        return stored, {}
    own = written(record.config)
    return {path: stored[path] for path in stored if path in own}, {p: v for p, v in stored.items() if p not in own}


def idle_keys(record: StoredRun) -> frozenset[str]:
    """Return the paths of the keys that have no effect in this run."""
    return inert(record.config) if record.config else frozenset()


def scores(record: StoredRun) -> list[tuple[str, StoredScore | None, StoredScore | None]]:
    """Return (slice, score on test, score on valid) for each slice, beginning with the mean over all slices."""
    names = dict.fromkeys([ALL, *record.test, *record.valid])
    return [(name, record.test.get(name), record.valid.get(name)) for name in names]


def figures(record: StoredRun) -> Iterator[tuple[str, float]]:
    """Yield name and value of everything that was measured besides the scores; unknown values are left out."""
    found = {
        "steps": record.steps,
        "steps_to_99": record.steps_to_99,
        "diverged_step": record.diverged_step,
        "overlap": record.overlap,
        "params": record.params,
        "state_fixed": record.state_fixed,
        "state_cached": record.state_cached,
        "tokens_per_s": record.tokens_per_s,
        "wall_s": record.wall_s,
    }
    yield from ((key, value) for key, value in found.items() if value is not None)

"""A run folder: `Records` reads it, `Store` writes it."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mclab.atomic_files import NoFileError, read_whole
from mclab.config.ids import SCIENCE, run_id
from mclab.config.options import checkpoints
from mclab.config.outcome import FINAL, Outcome
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.config.strict import ConfigError
from mclab.passwords import without_passwords
from mclab.plan.plan import Plan
from mclab.plan.plan_diff import looked, plan_diff, renewal
from mclab.plan.plan_json import as_dict, from_dict
from mclab.printable import one_line
from mclab.store.files import StoreError, json_bytes, move_aside, plainly, write_whole
from mclab.store.lock import Lock, is_own_folder, refuse_foreign, remove_leftovers
from mclab.store.record import curve_bytes, read_curve, read_record, record_of

if TYPE_CHECKING:
    import polars as pl

#: The file in which a search keeps its space.
SPACE = "space.yaml"
_RUN = re.compile(r"[0-9a-f]{16}")
#: The folders within a run folder.
_OWN = ("records", "curves", "weights", "checkpoints", "tables", "plots")


def _evenly(names: list[str], most: int) -> list[str]:
    step = max(1.0, len(names) / most)
    return [names[int(place * step)] for place in range(min(most, len(names)))]


def to_stderr(line: str) -> None:
    """Print a remark to stderr. This is the default for `say`."""
    print(one_line(without_passwords(line)), file=sys.stderr)


class Records:
    """A run folder for reading. No lock is taken and no file changed, so the folder may be written meanwhile.

    `say` gets one line for each damaged record, which counts as missing. Raises `StoreError` if there is no folder.
    """

    def __init__(self, path: str | Path, *, say: Callable[[str], None] = to_stderr) -> None:
        self.path = Path(path)
        self._say = say
        self._read: dict[str, tuple[tuple[int, ...], StoredRun | None]] = {}
        self._told = set[str]()
        self._open()

    def _open(self) -> None:
        if not self.path.is_dir():
            what = "this is a file, not a run folder" if self.path.exists() else "there is no such run folder"
            raise StoreError(f"{self.path}: {what}")

    def lookup(self, run: str) -> StoredRun | None:
        """Return the run with this id, or `None` if its record is missing or damaged."""
        path = self._record(run)
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path}: the record cannot be read: {error.strerror}") from error
        seal = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if self._read.get(run, (None,))[0] != seal:
            self._read[run] = (seal, self._load(path, run))
        return self._read[run][1]

    def _load(self, path: Path, run: str) -> StoredRun | None:
        try:
            with plainly(path, "read"):
                return read_record(read_whole(path), run)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            if not isinstance(error.__cause__, NoFileError):
                raise
            self._say(f"{path}: {error.__cause__.strerror}; the run counts as missing")
            return None
        except ValueError as reason:
            self._say(f"{path}: the record {reason}; the run counts as missing")
            return None

    def scan(self) -> list[StoredRun]:
        """Return every run of the present science version, sorted by run id; report the number of other runs."""
        found = [record for run in self._ids() if (record := self.lookup(run))]
        mine = [record for record in found if record.science == SCIENCE]
        if others := len(found) - len(mine):
            self._say(f"{self.path}: {others} records are left out: their science version is not {SCIENCE}")
        return mine

    def sample(self, fresh: int, most: int) -> list[StoredRun]:
        """Return at most `most` runs: a sample of those that were read before and of up to `fresh` others.

        The sample is at even distances in the list of ids. It is fair, since ids are random, and quick for any folder.
        """
        known = [run for run, (_, record) in self._read.items() if record]
        folder = self.path / "records"
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        others = [name[:-5] for name in names if name.endswith(".json") and _RUN.fullmatch(name[:-5])]
        others = _evenly([run for run in others if run not in self._read], fresh)
        return [record for run in _evenly([*known, *others], most) if (record := self.lookup(run))]

    def scan_frame(self) -> "pl.DataFrame":
        """Return the runs of `scan` as a frame, one row per run (see `mclab.store.frame`). Imports polars."""
        from mclab.store.frame import frame_of

        return frame_of(self.scan())

    def _ids(self) -> Iterator[str]:
        folder = self.path / "records"
        if folder.is_dir():
            yield from sorted(
                path.stem for path in folder.iterdir() if path.suffix == ".json" and _RUN.fullmatch(path.stem)
            )

    def curve(self, run: str) -> list[dict[str, Any]]:
        """Return the evaluations of a run in order. A damaged or missing part of the file is left out and reported."""
        path, record = self._curve(run), self.lookup(run)
        try:
            found, fault = read_curve(read_whole(path), record.curve_sha256 if record else None)
            if not (found or fault) and record and record.status == "done" and record.curve_sha256 is None:
                fault = "the curve is empty"
        except FileNotFoundError:
            found, fault = [], "there is no such file; the curve is left out"
            if not path.parent.is_dir():
                path, fault = path.parent, "there is no such folder; all curves are left out"
        except OSError as error:
            found, fault = [], f"the file cannot be read: {error.strerror or error}; the curve is left out"
        if fault and str(path) not in self._told:
            self._told.add(str(path))
            self._say(f"{path}: {fault}")
        return found

    def plan(self) -> Plan | None:
        """Return the plan that the folder was last used with, `None` without one. Raises `ConfigError` if damaged."""
        try:
            with plainly(self._plan, "read"):
                data = read_whole(self._plan)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        try:
            return from_dict(json.loads(data.decode()), str(self._plan))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            raise ConfigError(f"{self._plan}: the plan is no valid JSON (damaged or cut off)") from None

    @property
    def _plan(self) -> Path:
        return self.path / "plan.json"

    def _record(self, run: str) -> Path:
        return self.path / "records" / f"{run}.json"

    def _curve(self, run: str) -> Path:
        return self.path / "curves" / f"{run}.ndjson"

    def weights(self, run: str) -> Path:
        """Return the path of the run's weights. The file exists if they were saved."""
        return self.path / "weights" / f"{run}.safetensors"

    @property
    def checkpoints(self) -> Path:
        """The folder that holds the checkpoints of runs in training."""
        return self.path / "checkpoints"

    def begun(self) -> dict[str, int]:
        """Return {run id: step of its checkpoint}, from the names of the files alone.

        The oldest checkpoint of a run counts: a pack that was killed while it saved has newer checkpoints of only some
        runs, and all its runs continue together from the earlier step.
        """
        with plainly(self.checkpoints, "read"):
            return {run: min(steps) for run, steps in checkpoints(self.checkpoints).items()}


class Store(Records):
    """A run folder for writing. Its lock is held from construction to `close` (or the end of `with`).

    Creates the folder, and removes files that a killed writer left half-written. A damaged record stays where it is
    until its run is stored again; then it is renamed to `<id>.json.damaged`. Raises `StoreError` if another process
    holds the lock or the folder cannot be written.
    """

    def _open(self) -> None:
        with plainly(self.path, "make the folder"):
            self.path.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.path)
        try:
            for folder in (self.path, self.path / "records", self.path / "curves"):
                with plainly(folder, "make the folder"):
                    folder.mkdir(exist_ok=True)
            self._tidy()
        except BaseException:
            self._lock.release()
            raise

    def _tidy(self) -> None:
        """Remove temporary files of killed writers, and the checkpoints of runs with a final result.

        Nothing is removed from a folder behind a symbolic link, which other programs may use too.
        """
        remove_leftovers(self.path)
        for name in _OWN:
            if is_own_folder(self.path / name):
                remove_leftovers(self.path / name)
        for run in self.begun() if is_own_folder(self.checkpoints) else ():
            record = self.lookup(run)
            if record and record.status in FINAL:
                self._forget(run)

    def _forget(self, run: str) -> None:
        with plainly(self.checkpoints, "remove a checkpoint"):
            for path in checkpoints(self.checkpoints).get(run, {}).values():
                path.unlink(missing_ok=True)

    def adopt(self, plan: Plan, grid: bytes | None = None, *, extend: bool = False) -> Plan:
        """Make `plan` the folder's plan: write `plan.json`, and `grid` as `grid.yaml`.

        Returns the plan as stored, with `looked` filled in. Records of runs that are not in the plan stay. Raises
        `StoreError` if the folder belongs to a search or has files of other programs, and without `extend` if it
        belongs to another grid. A change in the number of seeds needs no `extend`.
        """
        if (self.path / SPACE).exists():
            raise StoreError(f"{self.path}: this folder holds a search of mclab sweep; give another folder with --out")
        refuse_foreign(self.path, [self._plan.name], {"grid.yaml": grid} if grid is not None else {})
        before = self._plan_before()
        changed = plan_diff(before, plan) if before else None
        if changed and changed.needs_extend and not extend:
            raise StoreError(
                f"{self.path} holds another grid, compared with which this one is {changed}; "
                f"give --extend to continue with this grid in this folder, or give another folder with --out"
            )
        if before and (line := renewal(before, plan)):
            self._say(f"{self.path}: {line}")
        if grid is not None:
            write_whole(self.path / "grid.yaml", grid)
        plan = replace(plan, looked=looked(before, plan, self.lookup))
        write_whole(self._plan, json_bytes(as_dict(plan)))
        return plan

    def _plan_before(self) -> Plan | None:
        try:
            return self.plan()
        except StoreError:
            raise
        except ConfigError as reason:
            self._say(f"{reason}; the damaged file is kept as {move_aside(self._plan).name}")
            return None

    def put(self, run: RunConfig, outcome: Outcome) -> None:
        """Store a run's outcome: first weights and curve, then the record, so that a run with a record has them too.

        An `oom` or `failed` record is replaced, a final one never; a damaged one is renamed. A final outcome removes
        the run's checkpoints. Raises `StoreError` if a file cannot be written; what was stored before is not affected.
        """
        name, before = run_id(run), self.lookup(run_id(run))
        assert before is None or before.status not in FINAL, f"run {name} is stored already"
        if outcome.weights is not None:
            path = self.weights(name)
            with plainly(path.parent, "make the folder"):
                path.parent.mkdir(exist_ok=True)
            write_whole(path, outcome.weights)
        write_whole(self._curve(name), curve_bytes(outcome.curve))
        if before is None and self._record(name).exists():
            kept = move_aside(self._record(name)).name
            self._say(f"{self._record(name)}: the record is damaged; the damaged file is kept as {kept}")
        write_whole(self._record(name), json_bytes(record_of(run, outcome)))
        if outcome.status in FINAL:
            self._forget(name)

    def close(self) -> None:
        """Remove the checkpoints' folder if it is empty, and release the lock."""
        with suppress(OSError):
            self.checkpoints.rmdir()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

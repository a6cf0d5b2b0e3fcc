"""A stored run by the first digits of its id, wherever it lies, and its weights."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mclab.config.run import RunConfig, science
from mclab.config.strict import ConfigError, as_texts
from mclab.store import Records
from mclab.store.record import config_of

#: Where run folders lie unless one is named.
RUNS = Path("runs")
_MOST_NAMED = 4


@dataclass(frozen=True)
class Stored:
    """A run and the run folder that holds it."""

    folder: Path
    run_id: str

    @property
    def weights(self) -> Path:
        """Where its weights stand, if they were kept."""
        return Records(self.folder).weights(self.run_id)


def find(digits: str, folder: Path | None = None) -> Stored:
    """The one run whose id begins with `digits`, in `folder` or in any folder below runs; with weights, if any has.

    Raises `ConfigError` for digits that are none, for none or several runs, and for a run without weights.
    """
    if not re.fullmatch(r"[0-9a-f]{1,16}", digits):
        raise ConfigError(f"--run: {digits!r} is no run id: up to 16 of the digits 0-9a-f, as mclab list shows them")
    folders = [folder] if folder else sorted(path.parent for path in RUNS.glob("*/records"))
    found = [Stored(each, name) for each in folders for name in _ids(each) if name.startswith(digits)]
    names = sorted({stored.run_id for stored in found})
    where = folder or f"{RUNS}/*"
    if not names:
        raise ConfigError(f"--run: no run in {where} begins with {digits}; mclab list FOLDER shows every id")
    if len(names) > 1:
        more = ", …" if len(names) > _MOST_NAMED else ""
        raise ConfigError(f"--run: {digits} fits {len(names)} runs: {', '.join(names[:_MOST_NAMED])}{more}")
    for stored in found:
        if stored.weights.is_file():
            return stored
    raise ConfigError(_without_weights(found[0]))


def _ids(folder: Path) -> Iterator[str]:
    Records(folder)  # says what is wrong with a folder that is none
    records = folder / "records"
    if not records.is_dir():
        raise ConfigError(f"{folder}: holds no records; give the folder of an ablate or train command")
    yield from (path.stem for path in records.glob("*.json") if re.fullmatch("[0-9a-f]{16}", path.stem))


def _without_weights(stored: Stored) -> str:
    record = Records(stored.folder).lookup(stored.run_id)
    if record is None or record["status"] != "done":
        return f"run {stored.run_id} is {record['status'] if record else 'damaged'}: it left no weights"
    again = f"{training(config_of(record))} --save-weights --out {shlex.quote(f'{stored.folder}-weights')}"
    return f"run {stored.run_id} is stored without weights; train it with --save-weights into another folder: {again}"


def training(run: RunConfig) -> str:
    """The command that trains this run again, under the same id."""
    keys = {path: value for path, value in science(run).items() if path != "seed"}
    return shlex.join(["mclab", "train", *as_texts({**keys, "seed": run.seed})])

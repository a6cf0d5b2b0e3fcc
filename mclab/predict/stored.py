"""A stored run with its weights, by the first digits of its id."""

import shlex
from collections.abc import Callable
from pathlib import Path

from mclab.config.ids import written
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, as_texts
from mclab.store import Records
from mclab.store.find import Stored, find_run


def find(digits: str, folder: Path | None, say: Callable[[str], None]) -> Stored:
    """The one run whose id begins with `digits` (see `mclab.store.find.find_run`), with weights.

    Raises `ConfigError` also for a run without weights.
    """
    stored = find_run(digits, folder, say, weights=True)
    if stored.weights.is_file():
        return stored
    raise ConfigError(_without_weights(stored))


def _without_weights(stored: Stored) -> str:
    record = Records(stored.folder).lookup(stored.run_id)
    if record is None or record.status != "done":
        return f"run {stored.run_id} is {record.status if record else 'damaged'}: it left no weights"
    if record.config is None:
        return (
            f"run {stored.run_id} is stored without weights, and of science version {record.science}: "
            f"this version of mclab cannot train it again"
        )
    again = f"{training(record.config)} --save-weights --out {shlex.quote(f'{stored.folder}-weights')}"
    return f"run {stored.run_id} is stored without weights; train it with --save-weights into another folder: {again}"


def training(run: RunConfig) -> str:
    """The command that trains this run again, under the same id if no part of it has changed since."""
    keys = {path: value for path, value in written(run).items() if path != "seed"}
    return shlex.join(["mclab", "train", *as_texts({**keys, "seed": run.seed})])

"""Choose the stored run to show, and its sequences: those of its task, of one slice, or of a variant of the task."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from mclab.config.error import did_you_mean
from mclab.config.ids import written
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, as_texts
from mclab.config.task import TaskConfig
from mclab.config.variants import WEIGHT, variants
from mclab.store import Records
from mclab.store.find import Stored, find_run


def find(digits: str, folder: Path | None, say: Callable[[str], None]) -> Stored:
    """Return the one run whose id begins with `digits` and whose weights are stored (see `mclab.store.find.find_run`).

    Raises `ConfigError` if there is no such run or more than one, and for a run without weights.
    """
    stored = find_run(digits, folder, say, weights=True)
    if stored.weights.is_file():
        return stored
    raise ConfigError(_without_weights(stored))


def _without_weights(stored: Stored) -> str:
    record = Records(stored.folder).lookup(stored.run_id)
    if record is None or record.status != "done":
        return f"run {stored.run_id} has no weights, because it is {record.status if record else 'damaged'}"
    if record.config is None:
        return (
            f"run {stored.run_id} is stored without weights, and this version of mclab cannot train it "
            f"again, because its science version is {record.science}"
        )
    again = f"{training(record.config)} --save-weights --out {shlex.quote(f'{stored.folder}-weights')}"
    return f"run {stored.run_id} is stored without weights; train it again into another folder: {again}"


def training(run: RunConfig) -> str:
    """Return the command that trains this run again. The id is the same unless a formula has changed since."""
    keys = {path: value for path, value in written(run).items() if path != "seed"}
    return shlex.join(["mclab", "train", *as_texts({**keys, "seed": run.seed})])


def chosen(run: RunConfig, overrides: Sequence[str] = (), slice_name: str | None = None) -> TaskConfig:
    """Return the run's task with the keys in `overrides` changed (`length=128` or `task.length=128`), or one slice of
    it.

    `slice_name` is the name of a slice in the tables: one of the task's own or, without overrides, one of a test
    variant in `eval.task`. Raises `ConfigError` for a key that is not one of the task, for a change of the vocabulary,
    for an invalid value, for a length beyond the learned positions, and for an unknown slice.
    """
    task = _changed(run, [_own(run, text) for text in overrides]) if overrides else run.task
    if slice_name is None:
        return task
    slices = {own: task.only(own) for own in task.slices}
    if not overrides:
        for exam in run.test_variants:
            slices |= {name: exam.task.only(own) for name, own in exam.slices.items()}
    if slice_name not in slices:
        hint = did_you_mean(slice_name, slices, "; ") if len(slices) > 1 else ""
        raise ConfigError(f"--slice: {slice_name!r} is not one of {', '.join(slices)}{hint}")
    return slices[slice_name]


def _own(run: RunConfig, text: str) -> str:
    """Return the override without the prefix `task.`. Raises `ConfigError` if it is not an override of the task."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text}: this is not an override; write key=value, e.g. length=128")
    room, dot, rest = key.partition(".")
    if dot and room != "task":
        raise ConfigError(
            f"{text}: with --run only keys of the task can be changed, because the model is already trained"
        )
    name = rest if dot else key
    if name in (WEIGHT, "seed"):
        raise ConfigError(f"{text}: {run.task.name} has no key {name}")
    return f"{name}={value}"


def _changed(run: RunConfig, texts: Sequence[str]) -> TaskConfig:
    line = " ".join(texts)
    try:
        found = variants(run.task, (line,))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if len(found) > 1:
        raise ConfigError(f"{line}: these values make {len(found)} tasks; give each key one value")
    task = found[0].task
    if run.model.position == "learned" and task.length > run.task.length:
        raise ConfigError(
            f"{line}: length {task.length} is longer than the {run.task.length} positions that the run has learned"
        )
    return task

"""The verb that shows sequences: those of a task, or those of a stored run with its model's answers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mclab.cli import options as of
from mclab.cli.streams import remark, result, result_json

if TYPE_CHECKING:
    from mclab.predict import Predicted

_PICTURES = ("png", "svg", "pdf")
_RUN_ONLY = ("--in", "--slice", "--layer", "--head", "--plot")


def sample(
    task: of.SampleTask = None,
    overrides: of.TaskOverrides = None,
    run: of.StoredRun = None,
    within: of.Within = None,
    count: of.Count = 3,
    seed: of.SampleSeed = None,
    split: of.Split = None,
    slice_: of.Slice = None,
    layer: of.Layer = None,
    head: of.Head = None,
    plot: of.Plot = None,
    as_json: of.Json = False,
) -> None:
    """Print a task's sequences, or what a trained model answers.

    Keys, values and answers are marked for a person to read; with --run ID the model's answers, and why.
    """
    given = [task, *(overrides or [])] if task and "=" in task else list(overrides or [])
    named = None if task and "=" in task else task
    _no_options(given)
    if run is None:
        asked = dict(zip(_RUN_ONLY, (within, slice_, layer, head, plot), strict=True))
        _only_with_run([option for option, value in asked.items() if value is not None])
        return _of_task(named or "mqar", given, seed or 0, split or "train", count, as_json)
    _no_seed(seed)
    return _of_run(run, within, named, given, split or "test", slice_, count, layer, head, plot, as_json)


def _of_task(task: str, overrides: list[str], seed: int, split: str, count: int, as_json: bool) -> None:
    from mclab.sample import as_text, recall_text, sampled, without_recall

    rows = sampled(task, overrides, seed=seed, split=split, count=count)
    if as_json:
        return result_json(rows)
    return result(f"{as_text(rows)}\n\n{recall_text(without_recall(task, overrides, seed=seed))}")


def _no_options(overrides: list[str]) -> None:
    """Raises `ConfigError` where an option of the command is given as a key."""
    from mclab.config.strict import ConfigError

    for text in overrides:
        key, _, value = text.partition("=")
        if key in ("count", "seed", "split", "run", "slice", "layer", "head"):
            raise ConfigError(f"{text}: is an option here; write --{key} {value}")


def _only_with_run(options: list[str]) -> None:
    from mclab.config.strict import ConfigError

    if options:
        raise ConfigError(f"{options[0]}: goes with --run ID; a task alone has no model")


def _no_seed(seed: int | None) -> None:
    from mclab.config.strict import ConfigError

    if seed is not None:
        raise ConfigError(f"--seed: a stored run is shown on sequences of its own seed; leave out --seed {seed}")


def _form(plot: Path | None) -> str:
    """The picture's format, by the end of its name. Raises `ConfigError` for another, before anything is loaded."""
    return of.one_of("--plot", plot.suffix.removeprefix(".").lower(), _PICTURES) if plot else ""


def _of_run(
    digits: str,
    within: Path | None,
    task: str | None,
    overrides: list[str],
    split: str,
    slice_name: str | None,
    count: int,
    layer: int | None,
    head: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    from mclab.cli.predictions import predictions_json, predictions_text
    from mclab.config.strict import ConfigError
    from mclab.predict import chosen, find, load_model, predicted
    from mclab.report.characters import marks_for

    form = _form(plot)
    stored = find(digits, within, remark)
    model, run = load_model(stored.folder, stored.run_id)
    if task not in (None, run.task.name):
        raise ConfigError(f"{task}: run {stored.run_id} was trained on {run.task.name}; leave the task out")
    found = predicted(model, run, chosen(run, overrides, slice_name), split, count, layer=layer, head=head)
    if plot:
        _draw(found, plot, form)
    if as_json:
        return result_json(predictions_json(found, stored.run_id, str(stored.folder)))
    result(f"run {stored.run_id} of {stored.folder}\n")
    return result(predictions_text(found, marks_for(sys.stdout.encoding if sys.stdout else None)))


def _draw(found: "Predicted", path: Path, form: str) -> None:
    """Write the picture and say so; or say why there is none."""
    from mclab.cli.predictions import picture
    from mclab.config.strict import ConfigError
    from mclab.files import write_whole

    if found.gateless:
        raise ConfigError(f"--plot: nothing to draw; {found.gateless}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, picture(found, form))
    except OSError as error:
        raise ConfigError(f"--plot: {path}: cannot be written: {(error.strerror or str(error)).lower()}") from error
    return remark(f"wrote {path}")

"""`mclab sample`: print sequences of a task, or of a stored run with its model's answers."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import remark, result, result_json

if TYPE_CHECKING:
    from mclab.verbs.sample.answers import Predicted

_PICTURES = ("png", "svg", "pdf")
_RUN_ONLY = ("--in", "--slice", "--layer", "--head", "--plot")

SampleTask = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="Name of a task, e.g. mqar; with --run the task of the run.", show_default=False
    ),
]
TaskOverrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Keys of the task with other values, e.g. pairs=4.")
]
StoredRun = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="ID", help="Show what this stored run answers; the first digits of its id are enough."
    ),
]
Within = Annotated[
    Path | None,
    typer.Option(
        "--in",
        metavar="FOLDER",
        parser=of.folder,
        help="With --run: the run folder that holds the run; by default any folder in runs/.",
    ),
]
Count = Annotated[int, typer.Option("--count", metavar="N", min=1, max=10_000, help="Sequences.")]
SampleSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        max=2**31 - 1,
        help="Seed of the sequences; with --run the seed of the run. [default: 0]",
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split", metavar="SPLIT", help="Part of the data: train, valid or test. [default: train; with --run test]"
    ),
]
Slice = Annotated[
    str | None, typer.Option("--slice", metavar="NAME", help="With --run: show one slice only, e.g. pairs=4.")
]
Layer = Annotated[
    int | None,
    typer.Option("--layer", metavar="N", min=0, max=1023, help="With --run: show the gates of this layer only."),
]
Head = Annotated[
    int | None,
    typer.Option("--head", metavar="N", min=0, max=4095, help="With --run: show the gates of this head only."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        parser=of.file,
        help="With --run: draw the gates' weights into this file (png, svg or pdf).",
    ),
]


def sample(
    task: SampleTask = None,
    overrides: TaskOverrides = None,
    run: StoredRun = None,
    within: Within = None,
    count: Count = 3,
    seed: SampleSeed = None,
    split: Split = None,
    slice_: Slice = None,
    layer: Layer = None,
    head: Head = None,
    plot: Plot = None,
    as_json: of.Json = False,
) -> None:
    """Print a task's sequences, or what a trained model answers.

    Keys, values and answers are marked. With --run ID also the model's answers, and how its gates weigh the segments.
    """
    given = [task, *(overrides or [])] if task and "=" in task else list(overrides or [])
    named = None if task and "=" in task else task
    _no_options(given)
    _no_folder(named, run)
    if run is None:
        asked = dict(zip(_RUN_ONLY, (within, slice_, layer, head, plot), strict=True))
        _only_with_run([option for option, value in asked.items() if value is not None])
        return _of_task(named or "mqar", given, seed or 0, split or "train", count, as_json)
    _no_seed(seed)
    return _of_run(run, within, named, given, split or "test", slice_, count, layer, head, plot, as_json)


def _of_task(task: str, overrides: list[str], seed: int, split: str, count: int, as_json: bool) -> None:
    from mclab.verbs.sample.task import sampled, without_recall
    from mclab.verbs.sample.text import as_text, recall_text

    rows = sampled(task, overrides, seed=seed, split=split, count=count)
    if as_json:
        return result_json(rows)
    return result(f"{as_text(rows)}\n\n{recall_text(without_recall(task, overrides, seed=seed))}")


def _no_options(overrides: list[str]) -> None:
    """Raise `ConfigError` if an option of the command was written as an override, e.g. `count=5`."""
    from mclab.config.strict import ConfigError

    for text in overrides:
        key, _, value = text.partition("=")
        if key in ("count", "seed", "split", "run", "slice", "layer", "head"):
            raise ConfigError(f"{text}: {key} is an option of this command; write --{key} {value}")


def _no_folder(task: str | None, run: str | None) -> None:
    """Raise `ConfigError` where a run folder was given in the place of the task."""
    from mclab.config.strict import ConfigError
    from mclab.config.task import TASKS

    if task is not None and task not in TASKS and Path(task).is_dir():
        how = f"--run {run or 'ID'} --in {task}"
        ids = "" if run else f" (mclab list {task} prints the ids)"
        raise ConfigError(f"{task}: a folder is no task; mclab sample {how} shows a stored run{ids}")


def _only_with_run(options: list[str]) -> None:
    from mclab.config.strict import ConfigError

    if options:
        raise ConfigError(f"{options[0]}: this option needs --run ID, because a task alone has no model")


def _no_seed(seed: int | None) -> None:
    from mclab.config.strict import ConfigError

    if seed is not None:
        raise ConfigError(f"--seed: a stored run is shown on sequences of its own seed; leave out --seed {seed}")


def _form(plot: Path | None) -> str:
    """Return the format of the picture from the name of its file; "" if `plot` is `None`.

    Raises `ConfigError` for an unknown format.
    """
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
    from mclab.config.strict import ConfigError
    from mclab.report.characters import marks_for
    from mclab.train.weights import load_model
    from mclab.verbs.sample.answers import predicted
    from mclab.verbs.sample.run import chosen, find
    from mclab.verbs.sample.text import predictions_json, predictions_text

    form = _form(plot)
    stored = find(digits, within, remark)
    model, run = load_model(stored.folder, stored.run_id)
    if task not in (None, run.task.name):
        raise ConfigError(f"{task}: run {stored.run_id} was trained on the task {run.task.name}; leave out {task}")
    found = predicted(model, run, chosen(run, overrides, slice_name), split, count, layer=layer, head=head)
    if plot:
        _draw(found, plot, form)
    if as_json:
        return result_json(predictions_json(found, stored.run_id, str(stored.folder)))
    result(f"run {stored.run_id} of {stored.folder}\n")
    return result(predictions_text(found, marks_for(sys.stdout.encoding if sys.stdout else None)))


def _draw(found: "Predicted", path: Path, form: str) -> None:
    """Write the picture to `path`. Raises `ConfigError` if there is no gate to draw, or `path` cannot be written."""
    from mclab.atomic_files import write_whole
    from mclab.config.strict import ConfigError
    from mclab.verbs.sample.text import picture

    if found.why_no_gate:
        raise ConfigError(f"--plot: this run has no weights of a gate to draw ({found.why_no_gate})")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, picture(found, form))
    except OSError as error:
        raise ConfigError(f"--plot: {path}: cannot be written: {(error.strerror or str(error)).lower()}") from error
    return remark(f"wrote {path}")

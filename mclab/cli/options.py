"""The options that several commands share, each defined once, and functions that check their values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mclab.config.error import ConfigError
from mclab.config.options import number

Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Keys of the base with other values, e.g. train.steps=50."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A key with another value; the same as the argument KEY=VALUE."),
]
GridAndOverrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GRID KEY=VALUE",
        help="The grid's YAML file, and keys of its base with other values, e.g. train.steps=50.",
        show_default=False,
    ),
]
#: A list, so that a second --grid is reported instead of replacing the first.
Grid = Annotated[
    list[Path] | None,
    typer.Option("--grid", metavar="FILE", help="The grid's YAML file; the same as the argument GRID."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="KEY=VALUE",
        help="Run only the cells with this value; repeat the option for several. In a folder that holds the whole grid "
        "this needs --extend or another --out, and so does the whole grid afterwards.",
    ),
]


def folder(text: str) -> Path:
    """Parse the name of a folder. An empty name is refused, since it would mean the current folder."""
    if not text.strip():
        raise typer.BadParameter("the name is empty; give a folder")
    return _usable(text)


def file(text: str) -> Path:
    """Parse the name of a file. An empty name is refused, since it would mean the current folder."""
    if not text.strip():
        raise typer.BadParameter("the name is empty; give a file")
    from mclab.store.files import BESIDE

    return _usable(text, BESIDE)


def _usable(text: str, beside: int = 0) -> Path:
    from mclab.config.strict import ConfigError
    from mclab.store.files import usable

    try:
        return usable(Path(text), "given", beside)
    except ConfigError as error:  # Typer would report a `ValueError` as a text that is no path
        raise typer.BadParameter(str(error).partition(": ")[2]) from None


def default_out(name: str, smoke: bool = False, named_after: str = "grid") -> Path:
    """Return the default run folder of a plan or a space with this name."""
    from mclab.store.files import usable

    return usable(Path("runs") / (f"{name}-smoke" if smoke else name), f"the run folder, named after the {named_after}")


def _threads(text: str | int) -> int:
    """Parse the number of threads.

    `OMP_NUM_THREADS` may list several numbers, for nested parallel regions; the first one is used.
    """
    try:
        return number("--threads", str(text).partition(",")[0].strip())
    except ConfigError as error:
        raise typer.BadParameter(str(error).partition(": ")[2]) from None


def _out(meaning: str) -> Any:
    return typer.Option("--out", metavar="FOLDER", parser=folder, help=meaning)


Out = Annotated[Path | None, _out("Run folder; by default runs/<name of the grid's file>.")]
TrainOut = Annotated[Path | None, _out("Run folder; by default runs/train.")]
Elsewhere = Annotated[Path | None, _out("Write into this folder; by default into the run folder.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", parser=folder, help="Run folder, e.g. runs/gating.")]
Seeds = Annotated[str | None, typer.Option("--seeds", metavar="SEEDS", help="Seeds, e.g. 0..4 or 0,3,7.")]
Device = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="Device that trains: auto, cpu, cuda or cuda:N.")
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers", metavar="N", help="Number of processes; auto: one for each core on CPU, one for each GPU on CUDA."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="Train on the workers of this Dask cluster; with train.checkpoint_every they must share the run folder.",
    ),
]
Pack = Annotated[
    str, typer.Option("--pack", metavar="N", help="Number of runs that train as one batched model; auto: 1 on CPU.")
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads", metavar="N", parser=_threads, envvar="OMP_NUM_THREADS", help="Threads of each worker on CPU."
    ),
]
Kernels = Annotated[
    str,
    typer.Option(
        "--kernels", metavar="KIND", help="Kernels: torch, triton, or auto (Triton where mclab has a kernel)."
    ),
]
Compile = Annotated[
    str,
    typer.Option(
        "--compile",
        metavar="WHEN",
        help="on: training steps run through torch.compile; auto: only if that saves much more than it takes; off.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would run; write nothing.")]
Effect = Annotated[
    float | None,
    typer.Option(
        "--effect", metavar="DIFF", help="With --dry-run: print how often the plan would detect this difference."
    ),
]
Sd = Annotated[
    float | None,
    typer.Option(
        "--sd",
        metavar="SD",
        help=(
            "With --dry-run: standard deviation of paired differences, for the plan's power; by "
            "default from stored runs."
        ),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="Train two steps of every run, to see that it works; the results mean nothing.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Run the reduced form of the grid (its quick block).")]
SaveWeights = Annotated[
    bool, typer.Option("--save-weights", help="Save the trained models in <out>/weights, for mclab.load_model.")
]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first run that fails or diverges.")]
MaxFailures = Annotated[
    int | None,
    typer.Option("--max-failures", metavar="N", min=1, max=1_000_000, help="Stop when N runs have failed or diverged."),
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Run again the runs that failed or ran out of memory.")]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="VALUES",
        help="The row to compare with, e.g. 'gate=input segment=4'; by default the first.",
    ),
]
Extend = Annotated[bool, typer.Option("--extend", help="Allow another grid in a folder that holds one.")]


def one_of(what: str, given: str, known: Sequence[str]) -> str:
    """Return `given` if it is one of `known`. Raises `ConfigError`, with the nearest of `known`, if not."""
    from mclab.config.error import did_you_mean

    if given in known:
        return given
    hint = did_you_mean(given, known, "; ") if len(known) > 1 else ""
    raise ConfigError(f"{what}: {given!r} is not one of {', '.join(known)}{hint}")


def file_and_overrides(
    verb: str, option: str, given: Sequence[Path] | None, words: Sequence[str]
) -> tuple[Path, list[str]]:
    """Return the file that a command runs, and its overrides.

    The file is the one `given` by the option, or the one argument in `words` without `=`; the other arguments are the
    overrides. Raises `ConfigError` if there is no file, or more than one.
    """
    files = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    what = option.removeprefix("--")
    named = [*files, *(f"{option} {path}" for path in given or ())]
    if not named:
        raise ConfigError(f"mclab {verb}: give a {what}, e.g. mclab {verb} my.yaml (see mclab {verb} --help)")
    if strange := [word for word in files if not word.endswith((".yaml", ".yml")) and not Path(word).exists()]:
        raise ConfigError(f"{strange[0]}: is neither a file nor an override; write key=value, e.g. train.steps=50")
    if len(named) > 1:
        raise ConfigError(f"{named[0]}: two {what}s are given, {named[0]} and {named[1]}; give one of them")
    return Path(files[0]) if files else next(iter(given or ())), overrides


def only_for_grids(baseline: str | None, folder: Path) -> None:
    """Raise `ConfigError` if `--baseline` was given for the folder of a sweep."""
    if baseline is not None:
        raise ConfigError(f"--baseline: this option is for grids, but {folder} holds a sweep")

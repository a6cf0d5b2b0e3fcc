"""The command line: thin verbs. Heavy libraries are imported inside the verbs, so that --help is immediate."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

#: Exit codes beside 0: the user's input, runs that failed, an interrupt.
USER, RUNS, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="mclab",
    help="Ablations of Memory Caching models on synthetic recall tasks: a grid in, an honest table out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Override keys of the base, e.g. train.steps=50.")
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="The same, as an option.")]
Grid = Annotated[Path, typer.Option("--grid", metavar="FILE", help="YAML grid.")]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder; by default runs/<grid's file name>.")]
Folder = Annotated[Path, typer.Argument(metavar="RUNS", help="Run folder.")]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Seeds, e.g. 0..4 or [0, 3].")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Workers = Annotated[str, typer.Option("--workers", help="Processes: a number, or auto (cores on CPU, GPUs on CUDA).")]
Scheduler = Annotated[str | None, typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="A running Dask cluster.")]
Pack = Annotated[str, typer.Option("--pack", help="Runs that train as one model: a number, or auto (1 on CPU).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would run; write nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="Two steps of everything.")]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first run that fails or diverges.")]
MaxFailures = Annotated[int | None, typer.Option("--max-failures", min=1, help="Stop at so many of them.")]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Run again what failed or ran out of memory.")]
Extend = Annotated[bool, typer.Option("--extend", help="Allow another grid in a folder that holds one.")]


@app.callback()
def common(debug: Annotated[bool, typer.Option("--debug", help="Show a traceback for errors in the input.")] = False) -> None:
    """Options of every verb."""
    _State.debug = debug


class _State:
    debug = False


@app.command()
def ablate(
    grid: Grid,
    overrides: Overrides = None,
    set_: Set = None,
    out: Out = None,
    seeds: Seeds = None,
    device: Device = "auto",
    workers: Workers = "auto",
    scheduler: Scheduler = None,
    pack: Pack = "auto",
    dry_run: DryRun = False,
    as_json: Json = False,
    smoke: Smoke = False,
    fail_fast: FailFast = False,
    max_failures: MaxFailures = None,
    retry_failed: Retry = False,
    extend: Extend = False,
) -> None:
    """Plan a grid, run what is missing, write table and plot. The same command again resumes."""
    from mclab.ablate import Options, ablate
    from mclab.plan.grid import load_plan

    plan = load_plan(grid, [*(overrides or []), *(set_ or [])], seeds, smoke)
    options = Options(
        device=device,
        workers=_number_or_auto("--workers", workers),
        scheduler=scheduler,
        pack=_number_or_auto("--pack", pack),
        fail_fast=fail_fast,
        max_failures=max_failures,
        retry_failed=retry_failed,
        extend=extend,
    )
    where = out or _default_out(plan.name, smoke)
    if dry_run:
        from mclab.ablate import dry_run as describe

        return _print_dry_run(describe(plan, where, options), as_json)
    raise typer.Exit(ablate(plan, where, options, grid=grid.read_bytes(), as_json=as_json))


@app.command()
def train(
    overrides: Overrides = None,
    set_: Set = None,
    out: Out = None,
    seeds: Seeds = None,
    device: Device = "auto",
    workers: Workers = "1",
    pack: Pack = "auto",
    dry_run: DryRun = False,
    as_json: Json = False,
    smoke: Smoke = False,
    retry_failed: Retry = False,
) -> None:
    """Train one run (one per seed) from defaults and overrides."""
    from mclab.ablate import Options, ablate
    from mclab.plan.grid import plan_from

    plan = plan_from({}, "train", [*(overrides or []), *(set_ or [])], seeds, smoke)
    options = Options(
        device=device,
        workers=_number_or_auto("--workers", workers),
        pack=_number_or_auto("--pack", pack),
        retry_failed=retry_failed,
        extend=True,
    )
    where = out or _default_out("train", smoke)
    if dry_run:
        from mclab.ablate import dry_run as describe

        return _print_dry_run(describe(plan, where, options), as_json)
    raise typer.Exit(ablate(plan, where, options, grid=None, as_json=as_json))


@app.command()
def table(folder: Folder) -> None:
    """Print a run folder's table and write it again as csv, parquet and md."""
    from mclab.ablate import stored_plan
    from mclab.report.terminal import terminal_table
    from mclab.report.write import write_tables
    from mclab.store import Records

    records = Records(folder)
    plan = stored_plan(records)
    written = write_tables(plan, records.lookup, folder / "tables")
    typer.echo(terminal_table(plan, records.lookup))
    typer.echo("\n".join(f"wrote {path}" for path in written))


@app.command()
def plot(
    folder: Folder,
    formats: Annotated[list[str] | None, typer.Option("--format", help="png, svg or pdf; repeat for several.")] = None,
) -> None:
    """Write a run folder's plot again."""
    from mclab.ablate import stored_plan
    from mclab.report.plots import write_plots
    from mclab.store import Records

    records = Records(folder)
    written = write_plots(stored_plan(records), records.lookup, folder / "plots", formats or ("png", "svg"))
    typer.echo("\n".join(f"wrote {path}" for path in written))


@app.command("list")
def list_(folder: Folder, as_json: Json = False) -> None:
    """List the stored runs."""
    from mclab.ablate import listing
    from mclab.store import Records

    rows = listing(Records(folder))
    if as_json:
        return typer.echo(json.dumps(rows, indent=1))
    for row in rows:
        typer.echo("  ".join(f"{key}={value}" if key not in ("run_id", "status") else str(value) for key, value in row.items()))
    return typer.echo(f"{len(rows)} runs in {folder}")


@app.command()
def sample(
    task: Annotated[str, typer.Argument(help="Task, e.g. mqar.")] = "mqar",
    overrides: Overrides = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Sequences.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    split: Annotated[str, typer.Option("--split", help="train, valid or test.")] = "train",
    as_json: Json = False,
) -> None:
    """Print sequences of a task so that a person can read them."""
    from mclab.sample import sampled

    typer.echo(sampled(task, overrides or [], seed=seed, split=split, count=count, as_json=as_json))


@app.command()
def keys(as_json: Json = False) -> None:
    """List every key: type, default, meaning."""
    from mclab.config.keys import all_keys, shown

    if as_json:
        return typer.echo(json.dumps([vars(key) for key in all_keys()], indent=1))
    width = max(len(key.path) for key in all_keys())
    for key in all_keys():
        owner = f" ({key.of} alone)" if key.of else ""
        typer.echo(f"{key.path:<{width}}  {shown(key.default)}  [{key.type}]  {key.meaning}{owner}")
    return None


def _number_or_auto(option: str, text: str) -> int | str:
    from mclab.config.strict import ConfigError

    if text == "auto":
        return text
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ConfigError(f"{option}: needs a number from 1 or auto, got {text!r}")


def _default_out(name: str, smoke: bool) -> Path:
    return Path("runs") / (f"{name}-smoke" if smoke else name)


def _print_dry_run(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        return typer.echo(json.dumps(facts, indent=1))
    for line in facts["lines"]:
        typer.echo(line)
    return None


def main() -> NoReturn:
    """Entry point. A fault in the user's input is one line on standard error and exit code 2."""
    from mclab.config.strict import ConfigError

    try:
        app()
    except ConfigError as error:
        if _State.debug:
            raise
        print(error, file=sys.stderr)
        sys.exit(USER)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(0)

"""`mclab reproduce`: run the grid of a published table, and compare the results with it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.ablate import run_plan
from mclab.cli.dry_run import show_preview
from mclab.cli.output import remark, result, result_json, width, written
from mclab.config.options import AUTO, OFF, RunOptions

if TYPE_CHECKING:
    from mclab.plan.plan import Plan
    from mclab.plan.select import Curve, Lookup
    from mclab.verbs.ablate import Report

Target = Annotated[
    str, typer.Argument(metavar="TABLE", help="table5, table2, fig5, fig4, or a grid's file with a paper block.")
]
FromRecords = Annotated[bool, typer.Option("--from-records", help="Train nothing; show the runs that are stored.")]


def reproduce(
    target: Target,
    overrides: of.Overrides = None,
    set_: of.Set = None,
    only: of.Only = None,
    out: of.Out = None,
    seeds: of.Seeds = None,
    device: of.Device = AUTO,
    workers: of.Workers = AUTO,
    scheduler: of.Scheduler = None,
    pack: of.Pack = AUTO,
    threads: of.Threads = RunOptions.threads,
    kernels: of.Kernels = AUTO,
    compile_: of.Compile = OFF,
    dry_run: of.DryRun = False,
    from_records: FromRecords = False,
    as_json: of.Json = False,
    smoke: of.Smoke = False,
    quick: of.Quick = False,
    fail_fast: of.FailFast = False,
    max_failures: of.MaxFailures = None,
    retry_failed: of.Retry = False,
    extend: of.Extend = False,
) -> None:
    """Run a published table and compare the results with it.

    Each difference gets a verdict by test. The same command again resumes.
    """
    from mclab.plan.grid import load_plan
    from mclab.plan.loader import read
    from mclab.plan.only import narrowed
    from mclab.verbs.reproduce import grid_of, published

    grid, given = grid_of(target), [*(overrides or []), *(set_ or [])]
    content = read(grid)
    plan = published(narrowed(load_plan(grid, given, seeds, smoke, quick, content), only or []), grid)
    where = out or of.default_out(plan.name, smoke)
    if from_records:
        return _from_records(plan, where, as_json, [*given, *(only or []), *([seeds] if seeds is not None else [])])
    options = RunOptions(
        *(device, workers, scheduler, pack, threads, fail_fast, max_failures),
        retry_failed=retry_failed,
        extend=extend,
        kernels=kernels,
        compile=compile_,
    )
    if dry_run:
        return show_preview(plan, where, options, as_json)
    return run_plan(plan, where, options, content, partial(_report, as_json=as_json))


def _report(report: "Report", as_json: bool) -> None:
    remark(*written(report.files))
    _show(report.plan, report.lookup, report.curve, report.out, as_json)


def _from_records(plan: "Plan", folder: Path, as_json: bool, given: list[str]) -> None:
    """Show the stored runs of `folder`, with the plan in the folder and not that of the grid's file.

    Only the stored plan has the ids under which its runs are stored, and the published figures of that time.
    """
    from mclab.config.strict import ConfigError
    from mclab.verbs.reproduce import stored

    if given:
        raise ConfigError(
            f"--from-records: this option shows the runs of {folder} as they are stored; leave out {given[0]}"
        )
    kept, records = stored(folder)
    if kept.name != plan.name:
        raise ConfigError(
            f"{folder}: the folder holds {kept.name}, not {plan.name}; give the folder of {plan.name} with --out"
        )
    _show(kept, records.lookup, records.curve, folder, as_json)


def _show(plan: "Plan", lookup: "Lookup", curve: "Curve | None", out: Path, as_json: bool) -> None:
    from mclab.report.paper.files import frame
    from mclab.report.paper.text import terminal_text
    from mclab.verbs.reproduce import reproduction, write

    found = reproduction(plan, lookup, curve)
    if as_json:
        result_json(frame(found).to_dicts())
    else:
        result(terminal_text(found, width()).rstrip("\n"))
    remark(*written(write(found, out)))

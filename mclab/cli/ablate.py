"""`mclab ablate`: plan a grid, run what is missing, print the table."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mclab.cli import options as of
from mclab.cli.dry_run import show_preview
from mclab.cli.output import remark, result, result_json, width, written
from mclab.cli.progress import progress
from mclab.config.options import AUTO, OFF, RunOptions

if TYPE_CHECKING:
    from mclab.plan.plan import Plan
    from mclab.verbs.ablate import Report


def ablate(
    words: of.GridAndOverrides = None,
    grid: of.Grid = None,
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
    as_json: of.Json = False,
    smoke: of.Smoke = False,
    quick: of.Quick = False,
    fail_fast: of.FailFast = False,
    max_failures: of.MaxFailures = None,
    retry_failed: of.Retry = False,
    extend: of.Extend = False,
    save_weights: of.SaveWeights = False,
    baseline: of.Baseline = None,
    effect: of.Effect = None,
    sd: of.Sd = None,
) -> None:
    """Plan a grid, run what is missing, write table and plot. The same command again resumes."""
    from mclab.plan.grid import load_plan
    from mclab.plan.loader import read
    from mclab.plan.only import narrowed

    _check_power(effect, sd, dry_run)
    path, overrides = of.file_and_overrides("ablate", "--grid", grid, words or [])
    content = read(path)
    plan = narrowed(load_plan(path, [*overrides, *(set_ or [])], seeds, smoke, quick, content), only or [])
    options = RunOptions(
        *(device, workers, scheduler, pack, threads, fail_fast, max_failures),
        retry_failed=retry_failed,
        extend=extend,
        save_weights=save_weights,
        kernels=kernels,
        compile=compile_,
    )
    where = out or of.default_out(plan.name, smoke)
    if dry_run:
        return show_preview(plan, where, options, as_json, effect, sd)
    return run_plan(plan, where, options, content, partial(show_table, as_json=as_json), baseline)


def _check_power(effect: float | None, sd: float | None, dry_run: bool) -> None:
    from mclab.config.strict import ConfigError

    for name, value in (("--effect", effect), ("--sd", sd)):
        if value is not None and not dry_run:
            raise ConfigError(f"{name}: this option needs --dry-run, which prints the power of a plan")
        if value is not None and not 0 < value <= 1:
            raise ConfigError(f"{name}: must be above 0 and at most 1, in the unit of accuracy, not {value:g}")


def run_plan(
    plan: "Plan",
    out: Path,
    options: RunOptions,
    grid: bytes | None,
    show: Callable[["Report"], None],
    baseline: str | None = None,
) -> None:
    """Train the missing runs, pass the report to `show` unless there was an interrupt, and exit with the exit code."""
    from mclab.verbs.ablate import ablate

    with progress() as (advance, say):
        report = ablate(plan, out, options, grid=grid, say=say, progress=advance, baseline=baseline)
    if not report.summary.interrupted:
        show(report)
    remark(report.summary_line(), *report.unwritten)
    raise typer.Exit(report.exit_code)


def show_table(report: "Report", as_json: bool) -> None:
    """Print the table of a run folder, after a command that was not interrupted."""
    if as_json:
        return result_json(report.as_dict())
    from mclab.report.terminal import terminal_table
    from mclab.verbs.resume import command

    again = command(report.out, report.plan)
    result(terminal_table(report.plan, report.lookup, width(), again, report.curve).rstrip("\n"))
    return remark(*written(report.files))

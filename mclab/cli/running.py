"""The verbs that run something: ablate and train."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mclab.cli import options as of
from mclab.cli.progress import progress
from mclab.cli.streams import remark, result, result_json, width
from mclab.cli.texts import preview_text, written
from mclab.config.options import AUTO, RunOptions

if TYPE_CHECKING:
    from mclab.ablate import Report
    from mclab.plan.plan import Plan


def ablate(
    grid: of.Grid,
    overrides: of.Overrides = None,
    set_: of.Set = None,
    out: of.Out = None,
    seeds: of.Seeds = None,
    device: of.Device = AUTO,
    workers: of.Workers = AUTO,
    scheduler: of.Scheduler = None,
    pack: of.Pack = AUTO,
    threads: of.Threads = RunOptions.threads,
    kernels: of.Kernels = AUTO,
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

    _check_power(effect, sd, dry_run)
    content = read(grid)
    plan = load_plan(grid, [*(overrides or []), *(set_ or [])], seeds, smoke, quick, content)
    options = RunOptions(
        *(device, workers, scheduler, pack, threads, fail_fast, max_failures),
        retry_failed=retry_failed,
        extend=extend,
        save_weights=save_weights,
        kernels=kernels,
    )
    where = out or default_out(plan.name, smoke)
    if dry_run:
        return show_preview(plan, where, options, as_json, effect, sd)
    return _run(plan, where, options, content, as_json, baseline)


def _check_power(effect: float | None, sd: float | None, dry_run: bool) -> None:
    from mclab.config.strict import ConfigError

    for name, value in (("--effect", effect), ("--sd", sd)):
        if value is not None and not dry_run:
            raise ConfigError(f"{name}: is for --dry-run, which tells the power of a plan")
        if value is not None and not 0 < value <= 1:
            raise ConfigError(f"{name}: needs a number above 0 and at most 1, in the unit of accuracy, got {value:g}")


def train(
    overrides: of.Overrides = None,
    set_: of.Set = None,
    out: of.TrainOut = None,
    seeds: of.Seeds = None,
    device: of.Device = AUTO,
    workers: of.Workers = "1",
    scheduler: of.Scheduler = None,
    pack: of.Pack = AUTO,
    threads: of.Threads = RunOptions.threads,
    kernels: of.Kernels = AUTO,
    dry_run: of.DryRun = False,
    as_json: of.Json = False,
    smoke: of.Smoke = False,
    retry_failed: of.Retry = False,
    extend: of.Extend = False,
    save_weights: of.SaveWeights = False,
) -> None:
    """Train one run, once for each seed, from defaults and overrides. Further runs may go into the same folder."""
    from mclab.plan.grid import plan_from

    plan = plan_from({}, "train", [*(overrides or []), *(set_ or [])], seeds, smoke)
    where = out or default_out(plan.name, smoke)
    extend = extend or _gathers(where, plan.name)
    options = RunOptions(
        *(device, workers, scheduler, pack, threads),
        retry_failed=retry_failed,
        extend=extend,
        save_weights=save_weights,
        kernels=kernels,
    )
    if dry_run:
        return show_preview(plan, where, options, as_json)
    return _run(plan, where, options, None, as_json)


def default_out(name: str, smoke: bool) -> Path:
    """The run folder of a plan with this name where none is given."""
    from mclab.store.files import usable

    return usable(Path("runs") / (f"{name}-smoke" if smoke else name), "the run folder, named after the grid")


def _gathers(out: Path, name: str) -> bool:
    """True for a folder of earlier `mclab train` commands: it takes further runs, whatever they vary."""
    from mclab.config.strict import ConfigError
    from mclab.store import Records

    if not out.is_dir() or (out / "grid.yaml").exists():
        return False
    try:
        before = Records(out, say=remark).plan()
    except ConfigError:  # damaged: the store says so
        return False
    return before is not None and before.name == name


def show_preview(
    plan: "Plan",
    out: Path,
    options: RunOptions,
    as_json: bool,
    effect: float | None = None,
    sd: float | None = None,
) -> None:
    """Print what a dry run has to say."""
    from mclab.preview import preview

    found = preview(plan, out, options, effect, sd)
    if as_json:
        result_json(found.as_dict())
    else:
        result(preview_text(found))


def _run(
    plan: "Plan", out: Path, options: RunOptions, grid: bytes | None, as_json: bool, baseline: str | None = None
) -> None:
    from mclab.ablate import ablate

    with progress() as (show, say):
        report = ablate(plan, out, options, grid=grid, say=say, progress=show, baseline=baseline)
    if not report.summary.interrupted:
        _tell(report, as_json)
    remark(report.told())
    for line in report.unwritten:
        remark(line)
    raise typer.Exit(report.exit_code)


def _tell(report: "Report", as_json: bool) -> None:
    if as_json:
        return result_json(report.as_dict())
    from mclab.again import command
    from mclab.report.terminal import terminal_table

    again = command(report.out, report.plan)
    result(terminal_table(report.plan, report.lookup, width(), again, report.curve).rstrip("\n"))
    return remark(*written(report.files))

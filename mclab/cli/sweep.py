"""`mclab sweep`: search a space with an Optuna study."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mclab.cli import options as of
from mclab.cli.output import in_columns, remark, result, result_json, width, written
from mclab.cli.progress import progress
from mclab.config.options import AUTO, OFF, RunOptions

if TYPE_CHECKING:
    from mclab.plan import space_trials
    from mclab.plan.space import Space
    from mclab.sweep.command import Options
    from mclab.sweep.report import Report

SpaceAndOverrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SPACE KEY=VALUE",
        help="The search space's YAML file, and keys of its base with other values, e.g. train.steps=50.",
        show_default=False,
    ),
]
SpaceFile = Annotated[
    list[Path] | None,
    typer.Option("--space", metavar="FILE", help="The search space's YAML file; the same as the argument SPACE."),
]
Trials = Annotated[
    int,
    typer.Option(
        "--trials", metavar="N", min=1, max=1_000_000, help="Number of finished trials at which the search ends."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="Place of the study: postgresql://USER:PASSWORD@HOST/DATABASE, or a journal file; by default journal.log "
        "in the run folder.",
    ),
]
Study = Annotated[
    str | None, typer.Option("--study", metavar="NAME", help="Name of the study; by default that of the space's file.")
]
Sampler = Annotated[
    str | None,
    typer.Option(
        "--sampler", metavar="NAME", help="Sampler: tpe, random, gp, cmaes, qmc or grid; by default that of the space."
    ),
]
Pruner = Annotated[
    str | None, typer.Option("--pruner", metavar="NAME", help="Pruner: none or median; by default that of the space.")
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        metavar="N",
        min=1,
        max=100,
        help="Seeds that a trial averages over; by default those of the space.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**31 - 1, help="Seed of the sampler, and first seed of the runs."),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm",
        help=(
            "After the search, train one change at a time around the best point, and print how much "
            "each choice matters."
        ),
    ),
]
SweepOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", parser=of.folder, help="Run folder; by default runs/<name of the space>."),
]


def sweep(
    trials: Trials,
    words: SpaceAndOverrides = None,
    space: SpaceFile = None,
    set_: of.Set = None,
    out: SweepOut = None,
    storage: Storage = None,
    study: Study = None,
    sampler: Sampler = None,
    pruner: Pruner = None,
    repeats: Repeats = None,
    seed: Seed = None,
    device: of.Device = AUTO,
    workers: of.Workers = AUTO,
    scheduler: of.Scheduler = None,
    pack: of.Pack = AUTO,
    threads: of.Threads = RunOptions.threads,
    kernels: of.Kernels = AUTO,
    compile_: of.Compile = OFF,
    dry_run: of.DryRun = False,
    as_json: of.Json = False,
    fail_fast: of.FailFast = False,
    max_failures: of.MaxFailures = None,
    retry_failed: of.Retry = False,
    confirm: Confirm = False,
) -> None:
    """Search a space by an Optuna study. The same command again continues; several can share a study in a database."""
    from mclab.plan.loader import read
    from mclab.plan.space_load import load_space

    path, overrides = of.file_and_overrides("sweep", "--space", space, words or [])
    content, given = read(path), [*overrides, *(set_ or [])]
    found = load_space(path, given, repeats=repeats, seed=seed, sampler=sampler, pruner=pruner, content=content)
    how = RunOptions(
        *(device, workers, scheduler, pack, threads, fail_fast, max_failures, retry_failed),
        kernels=kernels,
        compile=compile_,
    )
    where = out or of.default_out(found.name, named_after="space")
    if dry_run:
        from mclab.verbs.sweep import dry_run as preview

        facts, time = preview(found, where, trials, how, None if storage else study or found.name)
        return result_json(facts) if as_json else result(_preview(found, facts, time))
    from mclab.sweep.command import Options

    return _run(found, where, Options(trials, how, storage, study, seed or 0), content, as_json, confirm)


def _run(space: "Space", out: Path, asked: "Options", content: bytes, as_json: bool, then_confirm: bool) -> None:
    from mclab.sweep.command import sweep

    with progress() as (show, say):
        report = sweep(space, out, asked, content=content, say=say, progress=show)
    if not report.interrupted and not as_json:
        _tell(report, not then_confirm)
    remark(report.in_words(), *report.unwritten)
    code, found = report.exit_code, report.as_dict() if as_json else {}
    if then_confirm and not report.interrupted:
        after, found["confirmation"] = _confirm(space, report.found, out, asked.how, as_json)
        code = after or code
    if as_json and not report.interrupted:
        result_json(found)
    raise typer.Exit(code)


def _tell(report: "Report", to_confirm: bool) -> None:
    from mclab.passwords import command_line
    from mclab.report.sweeps.tables import terminal_text

    again = command_line(["mclab", *sys.argv[1:], "--confirm"]) if to_confirm else None
    result(terminal_text(report.found, width(), again).rstrip("\n"))
    return remark(*written(report.files))


def _confirm(
    space: "Space", found: "space_trials.Trials", out: Path, options: RunOptions, as_json: bool
) -> tuple[int, dict[str, Any]]:
    """Run the confirming grid around the best point. Return the exit code, and the results for --json."""
    from mclab.verbs.sweep import best_point_grid, confirmed, run_confirmation, verdicts

    grid = best_point_grid(space, found, out)
    remark(
        f"wrote {grid.path}: {len(grid.asked.changes)} changes around trial {grid.asked.trial.number}, "
        "each with seeds added until told"
    )
    with progress() as (show, say):
        report = run_confirmation(grid, options, say, show)
    if report.summary.interrupted:
        remark(report.summary_line())
        return report.exit_code, {}
    both, page = confirmed(found, grid, report, out)
    if not as_json:
        from mclab.report.sweeps.confirmation import text

        result(f"\n{text(both, width())}".rstrip("\n"))
        remark(*written((page, *report.files)))
    remark(report.summary_line())
    return report.exit_code, {**report.as_dict(), "verdicts": verdicts(both), "page": str(page)}


def _preview(space: "Space", facts: dict[str, Any], time: str) -> str:
    from mclab.plan.space import words
    from mclab.runner.memory_limits import bytes_text

    runs = space.base_point().runs
    points = f"{facts['points']:,} points" if facts["points"] else "a continuous space"
    lines = [*([space.question, ""] if space.question else [])]
    lines += [in_columns([("searched", "values"), *((axis.path, words(axis)) for axis in space.axes)]), ""]
    lines += [*space.notes, *(f"warning: {line}" for line in facts["warnings"])]
    goals = " and ".join(f"{each.direction} {each.metric}" for each in space.objectives)
    lines.append(f"{goals}; sampler {space.sampler}, pruner {space.pruner}; {points}")
    done = f" ({facts['finished']} of them finished)" if facts["finished"] else ""
    seeds = f" x {len(runs)} seeds" * (len(runs) > 1)
    lines.append(
        f"{facts['trials']} trials{seeds}{done}; {facts['tokens']:,} training tokens if all cost as much as the base; "
        f"{time}; into {facts['out']}"
    )
    lines.append(
        f"roughly {bytes_text(facts['memory_of_a_process'])} of memory for each process, at the most "
        "expensive end of an axis"
    )
    return "\n".join(lines)

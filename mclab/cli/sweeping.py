"""The verb that searches: sweep."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mclab.cli import options as of
from mclab.cli.progress import progress
from mclab.cli.streams import remark, result, result_json, width
from mclab.cli.texts import in_columns, written
from mclab.config.options import AUTO, RunOptions

if TYPE_CHECKING:
    from mclab.plan.space import Space
    from mclab.sweep.command import Options
    from mclab.sweep.report import Report

SpaceFile = Annotated[Path, typer.Option("--space", metavar="FILE", help="YAML search space.")]
Trials = Annotated[
    int, typer.Option("--trials", metavar="N", min=1, max=1_000_000, help="Finished trials that the study shall have.")
]
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="postgresql://USER:PASSWORD@HOST/DATABASE, or a journal's path; by default journal.log in the run folder.",
    ),
]
Study = Annotated[str | None, typer.Option("--study", metavar="NAME", help="By default the name of the space's file.")]
Sampler = Annotated[
    str | None,
    typer.Option("--sampler", metavar="NAME", help="tpe, random, gp, cmaes, qmc or grid; by default the space's own."),
]
Pruner = Annotated[
    str | None, typer.Option("--pruner", metavar="NAME", help="none or median; by default the space's own.")
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats", metavar="N", min=1, max=100, help="Seeds that a trial averages over; by default the space's own."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**31 - 1, help="The sampler's, and the first of the runs'."),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm", help="Then train one change at a time around the best point, and say what each choice is worth."
    ),
]
SweepOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", parser=of.folder, help="Run folder; by default runs/<name of the space>."),
]


def sweep(
    space: SpaceFile,
    trials: Trials,
    overrides: of.Overrides = None,
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
    dry_run: of.DryRun = False,
    as_json: of.Json = False,
    fail_fast: of.FailFast = False,
    max_failures: of.MaxFailures = None,
    retry_failed: of.Retry = False,
    confirm: Confirm = False,
) -> None:
    """Search a space by an Optuna study. The same command again goes on; others may share a study in a database."""
    from mclab.plan.loader import read
    from mclab.plan.space_load import load_space
    from mclab.store.files import usable

    content = read(space)
    words = [*(overrides or []), *(set_ or [])]
    found = load_space(space, words, repeats=repeats, seed=seed, sampler=sampler, pruner=pruner, content=content)
    how = RunOptions(device, workers, scheduler, pack, threads, fail_fast, max_failures, retry_failed, kernels=kernels)
    where = out or usable(Path("runs") / found.name, "the run folder, named after the space")
    if dry_run:
        from mclab.sweep.cost import finished

        done = 0 if storage else finished(where, study or found.name)
        return _preview(found, where, trials, min(done, trials), how, as_json)
    from mclab.sweep.command import Options

    return _run(found, where, Options(trials, how, storage, study, seed or 0), content, as_json, confirm)


def _run(space: "Space", out: Path, asked: "Options", content: bytes, as_json: bool, then_confirm: bool) -> None:
    from mclab.sweep.command import sweep

    with progress() as (show, say):
        report = sweep(space, out, asked, content=content, say=say, progress=show)
    if not report.interrupted and not as_json:
        _tell(report, not then_confirm)
    remark(report.in_words())
    for line in report.unwritten:
        remark(line)
    code, found = report.exit_code, report.as_dict() if as_json else {}
    if then_confirm and not report.interrupted:
        from mclab.cli.confirming import confirm

        after, found["confirmation"] = confirm(space, report.found, out, asked.how, as_json)
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


def _preview(space: "Space", out: Path, trials: int, done: int, options: RunOptions, as_json: bool) -> None:
    """What would be searched. Imports neither optuna nor torch and writes nothing."""
    from mclab.config.params import parameters, state_floats
    from mclab.plan.plan import tokens
    from mclab.runner.history import FRESH, MOST, History
    from mclab.runner.room import doubts, machine, needs, refuse, trains_here
    from mclab.runner.span import in_words, planned_device, planned_workers, whole_command
    from mclab.store import Records
    from mclab.sweep.cost import work_of

    ends = list(space.ends())
    base, large = needs(ends[:1])[0], needs(ends)
    refuse(base, None)
    here = machine() if trains_here(options.device, options.scheduler) else None
    run = space.base_point().runs[0]
    stored = Records(out, say=lambda line: None).sample(FRESH, MOST) if out.exists() else ()
    history = History(stored, planned_device(options), options.threads)
    processes = planned_workers(options, (trials - done) * len(space.seeds))
    whole = whole_command(work_of(space, trials - done, history), history, processes, options)
    facts: dict[str, Any] = {
        "name": space.name,
        "question": space.question,
        "out": str(out),
        "trials": trials,
        "finished": done,
        "objectives": [vars(each) for each in space.objectives],
        "sampler": space.sampler,
        "pruner": space.pruner,
        "seeds": list(space.seeds),
        "points": len(space.listed()) if space.sampler == "grid" else space.size(),
        "base_params": parameters(run),
        "base_state": state_floats(run),
        "tokens": trials * len(space.seeds) * tokens(run),
        "memory_of_a_process": large[0].process,
        "processes": processes,
        "seconds": [round(whole.low, 1), round(whole.high, 1)] if whole else None,
        "stored_runs_used": history.runs,
        "notes": list(space.notes),
        "warnings": [*space.warnings, *doubts(large, 1, here, "ends of the space")],
        **space.describe(),
    }
    if as_json:
        return result_json(facts)
    left = in_words(whole, history.device, processes) if done < trials else "nothing left to run"
    return result(_preview_text(space, facts, left))


def _preview_text(space: "Space", facts: dict[str, Any], time: str) -> str:
    from mclab.plan.space import words
    from mclab.runner.room import size

    runs = space.base_point().runs
    points = f"{facts['points']:,} points" if facts["points"] else "a continuum of points"
    lines = [*([space.question, ""] if space.question else [])]
    lines += [in_columns([("searched", "values"), *((axis.path, words(axis)) for axis in space.axes)]), ""]
    lines += [*space.notes, *(f"warning: {line}" for line in facts["warnings"])]
    goals = " and ".join(f"{each.direction} {each.metric}" for each in space.objectives)
    lines.append(f"{goals}; sampler {space.sampler}, pruner {space.pruner}; {points}")
    done = f" ({facts['finished']} of them finished)" if facts["finished"] else ""
    seeds = f" x {len(runs)} seeds" * (len(runs) > 1)
    lines.append(
        f"{facts['trials']} trials{seeds}{done}; {facts['tokens']:,} training tokens if all are like the base; "
        f"{time}; into {facts['out']}"
    )
    lines.append(
        f"roughly {size(facts['memory_of_a_process'])} of memory a process, at the end of an axis that takes most"
    )
    return "\n".join(lines)

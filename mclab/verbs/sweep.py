"""`mclab sweep`: the dry run of a search, and the confirming grid of its best point.

The search itself is in `mclab.sweep`. Neither optuna nor torch is imported before training starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.atomic_files import write_whole
from mclab.config.options import RunOptions
from mclab.config.params import parameters, state_floats
from mclab.config.strict import ConfigError
from mclab.plan.comparable import meaningless
from mclab.plan.confirm import Confirmation, confirmation
from mclab.plan.grid import load_plan
from mclab.plan.plan import Plan, tokens
from mclab.plan.space import Space
from mclab.plan.space_trials import Trials
from mclab.runner.history import FRESH, MOST, History
from mclab.runner.memory_limits import machine, memory_warnings, needs, refuse, trains_here
from mclab.runner.time_range import planned_device, planned_workers, time_text, whole_command
from mclab.store import Records
from mclab.store.files import plainly
from mclab.sweep.cost import finished, work_of

if TYPE_CHECKING:
    from mclab.report.sweeps.confirmation import Confirmed
    from mclab.runner import Progress
    from mclab.verbs.ablate import Report

#: The page that compares the search with its confirming grid, in `tables` of the sweep's folder.
PAGE = "confirm.md"


def dry_run(space: Space, out: Path, trials: int, options: RunOptions, study: str | None) -> tuple[dict[str, Any], str]:
    """Return the facts of a search for JSON, and in words the time that it will take. Writes nothing.

    The finished trials in `out`/trials.json count as done if they belong to the study `study`; `study` is `None` if the
    study is stored elsewhere.
    """
    done = min(finished(out, study), trials) if study else 0
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
        "warnings": [*space.warnings, *memory_warnings(large, 1, here, "ends of the space")],
        **space.describe(),
    }
    return facts, time_text(whole, history.device, processes) if done < trials else "nothing left to run"


@dataclass(frozen=True)
class ConfirmingGrid:
    """The confirming grid of a search: its file in the sweep's folder, its plan, and its run folder `out`."""

    asked: Confirmation
    path: Path
    content: bytes
    plan: Plan
    out: Path


def best_point_grid(space: Space, found: Trials, out: Path) -> ConfirmingGrid:
    """Write the confirming grid, each row of which changes one choice of the best trial, and return it.

    Raises `ConfigError` if there is no best trial.
    """
    if meaningless(found):
        raise ConfigError("--confirm: too few trials have begun to recall for a best point to mean anything; see above")
    asked = confirmation(space, found)
    name = f"confirm-{asked.trial.number}" + f"-{found.study}" * (found.study != space.name)
    path, content = out / f"{name}.yaml", asked.text.encode()
    plan = load_plan(path, content=content)
    with plainly(path):
        write_whole(path, content)
    return ConfirmingGrid(asked, path, content, plan, out / name)


def run_confirmation(
    grid: ConfirmingGrid, options: RunOptions, say: Callable[[str], None], progress: Callable[["Progress"], None]
) -> "Report":
    """Train the missing runs of the confirming grid in its run folder.

    After an interrupt the same command continues.
    """
    from mclab.verbs.ablate import ablate

    return ablate(grid.plan, grid.out, options, grid=grid.content, say=say, progress=progress)


def confirmed(found: Trials, grid: ConfirmingGrid, report: "Report", out: Path) -> tuple["Confirmed", Path]:
    """Compare the search with its confirming grid, choice by choice.

    Return the comparison and the page that was written.
    """
    from mclab.report.sweeps.confirmation import confirmed as beside
    from mclab.report.sweeps.confirmation import page
    from mclab.report.sweeps.study import Study
    from mclab.report.table.summary import summarise

    summary = summarise(report.plan, report.lookup, report.curve)
    both = beside(Study(found), grid.asked.trial, summary, grid.asked.axis_of, grid.asked.refused)
    path = out / "tables" / PAGE
    with plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page(both).encode())
    return both, path


def verdicts(both: "Confirmed") -> list[dict[str, Any]]:
    """Return for JSON a dictionary for each row of the confirming grid."""
    from mclab.report.sweeps.confirmation import verdict_of

    return [
        {
            "axis": choice.each.axis.path,
            "best": both.trial.params[choice.each.axis.path],
            "importance": choice.each.shares[0],
            "row": row.cell.name,
            "difference": row.difference and row.difference.mean,
            "p": row.p,
            "verdict": verdict_of(row),
        }
        for choice in both.choices
        for row in choice.rows
    ]

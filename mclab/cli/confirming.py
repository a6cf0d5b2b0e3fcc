"""`mclab sweep --confirm`: the grid around the best point of a search, run and set beside what the search says."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.cli.progress import progress
from mclab.cli.streams import remark, result, width
from mclab.cli.texts import written
from mclab.config.options import RunOptions

if TYPE_CHECKING:
    from mclab.ablate import Report
    from mclab.plan.confirm import Confirmation
    from mclab.plan.space import Space
    from mclab.plan.space_trials import Trials
    from mclab.report.sweeps.confirmation import Confirmed

#: The page with search and confirmation side by side, in the sweep's folder.
PAGE = "confirm.md"


def confirm(
    space: "Space", found: "Trials", out: Path, options: RunOptions, as_json: bool
) -> tuple[int, dict[str, Any]]:
    """Write the grid into the sweep's folder, run it in a folder below, tell what it says of each choice.

    The exit code, and for --json what came of it. The same command again goes on. Raises `ConfigError` where there is
    nothing to confirm.
    """
    from mclab.ablate import ablate
    from mclab.config.strict import ConfigError
    from mclab.files import write_whole
    from mclab.plan.comparable import meaningless
    from mclab.plan.confirm import confirmation
    from mclab.plan.grid import load_plan
    from mclab.store.files import plainly

    if meaningless(found):
        raise ConfigError("--confirm: too few trials have begun to recall for a best point to mean anything; see above")
    asked = confirmation(space, found)
    name = f"confirm-{asked.trial.number}" + f"-{found.study}" * (found.study != space.name)
    path, content = out / f"{name}.yaml", asked.text.encode()
    plan = load_plan(path, content=content)
    with plainly(path):
        write_whole(path, content)
    remark(f"wrote {path}: {len(asked.changes)} changes around trial {asked.trial.number}, each with seeds until told")
    with progress() as (show, say):
        report = ablate(plan, out / name, options, grid=content, say=say, progress=show)
    if report.summary.interrupted:
        remark(report.told())
        return report.exit_code, {}
    return report.exit_code, _told(found, asked, report, out, as_json)


def _told(found: "Trials", asked: "Confirmation", report: "Report", out: Path, as_json: bool) -> dict[str, Any]:
    from mclab.files import write_whole
    from mclab.report.sweeps.confirmation import confirmed, page, text
    from mclab.report.sweeps.study import Study
    from mclab.report.table.summary import summarise
    from mclab.store.files import plainly

    summary = summarise(report.plan, report.lookup, report.curve)
    both = confirmed(Study(found), asked.trial, summary, asked.axis_of, asked.refused)
    path = out / "tables" / PAGE
    with plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page(both).encode())
    if not as_json:
        result(f"\n{text(both, width())}".rstrip("\n"))
        remark(*written((path, *report.files)))
    remark(report.told())
    return {**report.as_dict(), "verdicts": _verdicts(both), "page": str(path)}


def _verdicts(both: "Confirmed") -> list[dict[str, Any]]:
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

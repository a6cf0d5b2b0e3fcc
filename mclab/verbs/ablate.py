"""`mclab ablate`: train the runs that a plan needs and a run folder lacks, and write its tables and plots."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mclab.config.ids import run_id
from mclab.config.options import RunOptions
from mclab.config.outcome import FINAL
from mclab.config.stored import StoredRun
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.seeds import needed, wanted_by
from mclab.report.table.baseline import with_baseline
from mclab.runner import Progress, Start, Summary, execute
from mclab.runner.devices import here, resolved
from mclab.runner.memory_limits import machine, needs, refuse
from mclab.runner.own_modules import check_modules
from mclab.store import Records, Store
from mclab.store.files import StoreError, named_as_given
from mclab.verbs.plot import write_plots
from mclab.verbs.table import write_tables

#: Exit codes. DONE: all runs are done. UNWRITTEN: tables or plots could not be written. FAILED: some runs failed,
#: diverged or are missing. INTERRUPTED: the command was interrupted.
DONE, UNWRITTEN, FAILED, INTERRUPTED = 0, 2, 3, 130

Say = Callable[[str], None]


@dataclass(frozen=True)
class Report:
    """The result of a command: `summary` says what was run, `files` are the tables and plots that were written.

    `lookup` reads the stored record of a run and `curve` its evaluations. `unwritten` has a line for each error that
    kept files from being written.
    """

    plan: Plan
    out: Path
    lookup: Lookup
    summary: Summary
    files: tuple[Path, ...]
    unwritten: tuple[str, ...] = ()
    curve: Curve | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.summary.interrupted:
            return INTERRUPTED
        if self.unwritten:
            return UNWRITTEN
        return DONE if self.summary.clean else FAILED

    def summary_line(self) -> str:
        """Return one line that says what this command did and which runs are still missing."""
        summary = self.summary
        ran = ", ".join(f"{number} {status}" for status, number in sorted(summary.ran.items()))
        parts = [f"this command: {ran or 'nothing run'}", f"{summary.skipped} stored before", f"{summary.wall_s:.0f} s"]
        if summary.interrupted:
            parts.append(f"{summary.stored.total()} stored now, {summary.missing} missing")
        elif summary.missing:
            parts += [summary.stopped] if summary.stopped else []
            parts.append(f"{_runs(summary.missing)} still missing; the same command continues from here")
        elif not set(summary.stored) <= {*FINAL}:
            parts.append("--retry-failed tries the failed runs again")
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the rows of the table and the counts of the summary, for JSON. Imports polars."""
        from mclab.report.table.frames import cells_frame

        return {
            "out": str(self.out),
            "cells": cells_frame(self.plan, self.lookup, self.curve).to_dicts(),
            "ran": dict(self.summary.ran),
            "stored": dict(self.summary.stored),
            "missing": self.summary.missing,
            "stopped": self.summary.stopped,
            "wall_s": self.summary.wall_s,
            "files": [str(path) for path in self.files],
        }


def ablate(
    plan: Plan,
    out: Path,
    options: RunOptions,
    *,
    grid: bytes | None,
    say: Say,
    progress: Callable[[Progress], None],
    baseline: str | None = None,
) -> Report:
    """Train the runs that `out` lacks, then write tables and plots; after an interrupt, neither is written.

    `grid` is the content of the grid's file, `None` for a plan without one. `baseline` names the row that the tables
    compare with the others (`mclab.report.table.baseline`); what is stored does not depend on it. Raises `ConfigError`
    for a device that does not exist, for runs that need more memory than any machine has or far more than this one has,
    and for a folder that cannot be used.
    """
    with_baseline(plan, baseline)  # to find a wrong baseline before anything is trained
    options = resolved(options)
    check_memory(plan, options)
    with named_as_given(out, say) as (place, say_so):  # absolute, since a user's module may change the current folder
        check_modules(
            plan.first_runs(),
            place,
            here(options),
            say_so,
            wanted=lambda store, run: not _over(store.lookup(run_id(run)), options.retry_failed),
        )
        report = _ablated(plan, place, options, grid, say_so, progress, baseline)
    files = tuple(out / path.relative_to(place) for path in report.files)
    unwritten = tuple(line.replace(str(place), str(out), 1) for line in report.unwritten)
    return replace(report, out=out, files=files, unwritten=unwritten)


def _ablated(
    plan: Plan,
    out: Path,
    options: RunOptions,
    grid: bytes | None,
    say: Say,
    progress: Callable[[Progress], None],
    baseline: str | None,
) -> Report:
    """Do the work of `ablate`; `out` is an absolute path."""
    with Store(out, say=say) as store:
        plan = store.adopt(plan, grid, extend=options.extend)
        for line in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
            say(line)
        if options.save_weights and (lacking := _without_weights(plan, store)):
            say(
                f"{_runs(lacking)} of this plan {'is' if lacking == 1 else 'are'} stored without weights and not "
                f"trained again; with another --out all are trained and saved"
            )
        summary = execute(
            plan,
            store,
            options,
            begin=lambda start: say(_begins(plan, out, start, store)),
            progress=progress,
            echo=say,
            wanted=wanted_by(plan, store.curve),
        )
        shown = with_baseline(plan, baseline)
        files, unwritten = ([], []) if summary.interrupted else _written(shown, store, out)
    return Report(shown, out, store.lookup, summary, tuple(files), tuple(unwritten), store.curve)


def _begins(plan: Plan, out: Path, start: Start, store: Store) -> str:
    """Return one line that says how many runs will be trained, where, and how long that takes."""
    stored = sum(store.lookup(run_id(run)) is not None for run in needed(plan, store.lookup, store.curve))
    where = f"{start.processes} process{'es' * (start.processes != 1)}" if start.processes else "on the cluster"
    guess = f"; {start.time.text()} ({start.time.basis})" if start.time else ""
    most = "at most " if plan.until else ""
    return f"{plan.name}: {most}{_runs(start.runs)} to go ({stored} stored), {where}, into {out}{guess}"


def _without_weights(plan: Plan, store: Store) -> int:
    """Return how many of the plan's runs are done but have no weights."""
    names = [run_id(run) for run in needed(plan, store.lookup, store.curve)]
    done = [name for name in names if (record := store.lookup(name)) and record.status == "done"]
    return sum(not store.weights(name).exists() for name in done)


def _runs(number: int) -> str:
    return f"{number} run{'s' * (number != 1)}"


def _written(plan: Plan, records: Records, out: Path) -> tuple[list[Path], list[str]]:
    """Write tables and plots. Return the files, and the reasons why others could not be written.

    An error here does not stop the command, since the runs are stored and can still be shown.
    """
    files, faults = list[Path](), list[str]()
    for write in (write_tables, write_plots):
        try:
            files += write(plan, records, out)
        except StoreError as error:
            faults.append(str(error))
    return files, faults


def _over(record: StoredRun | None, retry_failed: bool) -> bool:
    """Return whether a run has a stored record that this command will not replace."""
    return record is not None and (record.status in FINAL or not retry_failed)


def check_memory(plan: Plan, options: RunOptions) -> None:
    """Raise `ConfigError` for a run that does not fit into memory even if the estimate is far too high."""
    here = options.device == "cpu" and options.scheduler is None
    replicas = options.pack if isinstance(options.pack, int) and here else 1
    runs = ((cell.name, next(iter(cell.candidates[0].runs.values()))) for cell in plan.cells)
    refuse(needs(runs, replicas)[0], machine() if here else None)

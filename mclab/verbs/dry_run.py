"""`--dry-run`: show what a plan would run. Imports no torch and writes nothing."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.config.ids import run_id
from mclab.config.options import ALONE, RunOptions
from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan import plan_json
from mclab.plan.plan import Cell, Plan, Workload, workload
from mclab.plan.plan_diff import plan_diff, renewal
from mclab.report.seeds import needed
from mclab.runner.history import FRESH, MOST, History
from mclab.runner.memory_limits import Need, machine, memory_warnings, needs, refuse, trains_here
from mclab.runner.time_range import TimeRange, planned_device, planned_workers, whole_command
from mclab.store import Records

if TYPE_CHECKING:
    from mclab.report.power import Power


@dataclass(frozen=True)
class CellSize:
    """The name of a cell, with the number of parameters and the state size (floats per sequence) of its first
    candidate.

    A number is `None` if a module of the user's own adds to it, since its size is not known.
    """

    name: str
    params: int | None
    state_fixed: int | None
    state_cached: int | None


@dataclass(frozen=True)
class Preview:
    """A plan, how much work it is, and how much of that is done.

    `seconds` is the predicted time of the remaining runs on one core or GPU. `time` is that of the whole command in
    `processes` on `device`; `None` on a cluster, and if nothing is known to estimate it from. `need` is the memory that
    the largest run takes in each process. `warnings` are about the plan, about runs that may not fit into memory, and
    about a folder that holds another grid.
    """

    plan: Plan
    out: Path
    size: Workload
    cells: tuple[CellSize, ...]
    stored: int
    seconds: float
    need: Need
    processes: int
    device: str
    time: TimeRange | None
    warnings: tuple[str, ...]
    power: "Power | None" = None

    @property
    def left(self) -> int:
        """The number of runs that are not stored yet."""
        return max(0, self.size.runs - self.stored)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as in `plan.json`, without the command line, with the size of each cell and the totals."""
        plan = plan_json.as_dict(self.plan)
        del plan["given"], plan["written"]
        cells = [{**asdict(own), **cell} for own, cell in zip(self.cells, plan.pop("cells"), strict=True)]
        return {
            **plan,
            "warnings": list(self.warnings),
            "out": str(self.out),
            "runs": self.size.runs,
            "least_runs": self.size.least,
            "first_runs": self.size.first,
            "stored": self.stored,
            "left": self.left,
            "tokens": self.size.tokens,
            "seconds_on_one_core": round(self.seconds),
            "memory_of_a_process": self.need.process,
            "processes": self.processes,
            "power": asdict(self.power) if self.power else None,
            "seconds": [round(self.time.low, 1), round(self.time.high, 1)] if self.time else None,
            "stored_runs_used": self.time.runs if self.time else 0,
            "cells": cells,
        }


def preview(
    plan: Plan, out: Path, options: RunOptions = ALONE, effect: float | None = None, sd: float | None = None
) -> Preview:
    """Predict work, time, memory and power of a plan with these `options` in the run folder `out`.

    The power is for a difference of `effect` if paired differences have the standard deviation `sd`; without `sd`, that
    is computed from the folder's records. Raises `ConfigError` if `out` is a file, and for runs that fit into no
    machine's memory.
    """
    counts, first = workload(plan), list(set(plan.first_runs()))
    missing = first
    records = Records(out, say=lambda line: None) if out.exists() else None
    stored = 0
    if records:
        asked = needed(plan, records.lookup, records.curve)
        missing = [run for run in asked if records.lookup(run_id(run)) is None]
        stored = len(asked) - len(missing)
    history = History(records.sample(FRESH, MOST) if records else (), planned_device(options), options.threads)
    left = max(0, counts.runs - stored)
    work = history.work(missing or first, left)  # nothing is missing if a failed run keeps cells from choosing
    processes = planned_workers(options, left)
    cells = tuple(map(_cell_size, plan.cells))
    large = needs(
        ((cell.name, _first(cell)) for cell in plan.cells), options.pack if isinstance(options.pack, int) else 1
    )
    refuse(large[0], None)
    here = machine() if trains_here(options.device, options.scheduler) else None
    return Preview(
        plan=plan,
        out=out,
        size=counts,
        cells=cells,
        stored=stored,
        seconds=work.seconds,
        need=large[0],
        processes=processes,
        device=history.device,
        time=whole_command(work, history, processes, options),
        warnings=(
            *plan.warnings,
            *memory_warnings(large, processes, here),
            *([] if options.extend else _conflict(plan, records)),
        ),
        power=_power(plan, records, effect, sd),
    )


def _power(plan: Plan, records: Records | None, effect: float | None, sd: float | None) -> "Power | None":
    """Return the power of the plan, `None` if it cannot be computed. Imports scipy.

    Raises `ConfigError` if `effect` or `sd` asks for a power that cannot be computed.
    """
    asked = effect is not None or sd is not None
    if len(plan.cells) < 2 or not (asked or records):
        if asked:
            raise ConfigError("--effect: this plan has one row, so there is nothing to compare")
        return None
    from mclab.report.power import plan_power

    found = plan_power(plan, records.lookup if records else lambda name: None, effect, sd)
    if found is None and asked:
        raise ConfigError(
            "--effect: no stored row has three seeds in common with the baseline; give the standard deviation of the "
            "paired differences, e.g. --sd 0.03"
        )
    return found


def _cell_size(cell: Cell) -> CellSize:
    run = _first(cell)
    return CellSize(cell.name, parameters(run), *state_floats(run))


def _first(cell: Cell) -> RunConfig:
    return next(iter(cell.candidates[0].runs.values()))


def _conflict(plan: Plan, records: Records | None) -> Iterator[str]:
    try:
        before = records.plan() if records else None
    except ConfigError as error:
        yield f"{error}; a run renames the damaged file and continues"
        return
    changed = plan_diff(before, plan) if before else None
    if records and changed and changed.needs_extend:
        yield (
            f"{records.path} holds another grid, compared with which this one is {changed}; it needs "
            "--extend or another --out"
        )
    if before and (line := renewal(before, plan)):
        yield line

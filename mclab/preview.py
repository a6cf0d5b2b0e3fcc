"""What a plan would run, before anything runs. Imports no torch and writes nothing."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig, run_id
from mclab.config.strict import ConfigError
from mclab.plan import describe
from mclab.plan.difference import difference, renewal
from mclab.plan.plan import Cell, Plan
from mclab.plan.select import runs_needed
from mclab.plan.size import Size, size
from mclab.runner.estimate import seconds
from mclab.runner.room import Need, doubts, machine, needs, refuse
from mclab.store import Records


@dataclass(frozen=True)
class CellSize:
    """A cell's name and what its first candidate holds: trained numbers, floats of state for one sequence.

    `None` where a module of the user's own holds some.
    """

    name: str
    params: int | None
    state_fixed: int | None
    state_cached: int | None


@dataclass(frozen=True)
class Preview:
    """A plan, how much work it is, and how much of that is done.

    `seconds` are for what is left, on one CPU core; `need` is what the largest run takes of memory, in each of
    `processes`. `warnings` are the plan's, what does not fit into memory and, where the folder holds another grid, that
    it does.
    """

    plan: Plan
    out: Path
    size: Size
    cells: tuple[CellSize, ...]
    stored: int
    seconds: float
    need: Need
    processes: int
    warnings: tuple[str, ...]

    @property
    def left(self) -> int:
        """Runs that are not stored yet."""
        return max(0, self.size.runs - self.stored)

    def as_dict(self) -> dict[str, Any]:
        """The plan as `plan.json` has it but for the words that made it, each cell with its size, and the totals."""
        plan = describe.as_dict(self.plan)
        del plan["given"]
        cells = [{**asdict(own), **cell} for own, cell in zip(self.cells, plan.pop("cells"), strict=True)]
        return {
            **plan,
            "warnings": list(self.warnings),
            "out": str(self.out),
            "runs": self.size.runs,
            "first_runs": self.size.first,
            "stored": self.stored,
            "left": self.left,
            "tokens": self.size.tokens,
            "seconds_on_one_core": round(self.seconds),
            "memory_of_a_process": self.need.process,
            "processes": self.processes,
            "cells": cells,
        }


def preview(
    plan: Plan, out: Path, extend: bool = False, replicas: int = 1, workers: int = 1, here: bool = True
) -> Preview:
    """Size up a plan for the run folder `out`, whose grid it may change with `extend`; `replicas` train together, in
    each of `workers` processes, in the memory of this machine where `here` says so.

    Raises `ConfigError` where a file stands in the folder's place, and for what fits into no memory.
    """
    counts, first = size(plan), set(plan.first_runs())
    records = Records(out, say=lambda line: None) if out.exists() else None
    stored = sum(records.lookup(run_id(run)) is not None for run in runs_needed(plan, records.lookup)) if records else 0
    cells = tuple(map(_cell_size, plan.cells))
    large = needs(((cell.name, _first(cell)) for cell in plan.cells), replicas)
    refuse(large[0], None)
    processes = max(1, min(workers, counts.runs - stored))
    share = max(0, counts.runs - stored) / max(1, len(first))
    return Preview(
        plan=plan,
        out=out,
        size=counts,
        cells=cells,
        stored=stored,
        seconds=seconds(first) * share,
        need=large[0],
        processes=processes,
        warnings=(
            *plan.warnings,
            *doubts(large, processes, machine() if here else None),
            *([] if extend else _conflict(plan, records)),
        ),
    )


def _cell_size(cell: Cell) -> CellSize:
    run = _first(cell)
    return CellSize(cell.name, parameters(run), *state_floats(run))


def _first(cell: Cell) -> RunConfig:
    return next(iter(cell.candidates[0].runs.values()))


def _conflict(plan: Plan, records: Records | None) -> Iterator[str]:
    try:
        before = records.plan() if records else None
    except ConfigError as error:
        yield f"{error}; a run keeps it aside and goes on"
        return
    changed = difference(before, plan) if before else None
    if records and changed and changed.needs_extend:
        yield f"{records.path} holds another grid, this one is {changed}: it wants --extend or another --out"
    if before and (line := renewal(before, plan)):
        yield line

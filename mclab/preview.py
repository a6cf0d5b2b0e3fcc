"""What a plan would run, before anything runs. Imports no torch and writes nothing."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mclab.config.params import parameters, state_floats
from mclab.config.run import run_id
from mclab.config.strict import ConfigError
from mclab.plan import describe
from mclab.plan.difference import difference, renewal
from mclab.plan.plan import Cell, Plan
from mclab.plan.select import runs_needed
from mclab.plan.size import Size, size
from mclab.runner.estimate import seconds
from mclab.store import Records

#: Bytes that training holds for each parameter: itself, its gradient and two moments.
BYTES = 16


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

    `seconds` are for what is left, on one CPU core. `warnings` are the plan's, what does not fit into memory
    and, where the folder holds another grid, that it does.
    """

    plan: Plan
    out: Path
    size: Size
    cells: tuple[CellSize, ...]
    stored: int
    seconds: float
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
            "cells": cells,
        }


def preview(plan: Plan, out: Path, extend: bool = False, replicas: int = 1) -> Preview:
    """Size up a plan for the run folder `out`, whose grid it may change with `extend`; `replicas` train together.

    Raises `ConfigError` where a file stands in the folder's place.
    """
    counts, first = size(plan), set(plan.first_runs())
    records = Records(out, say=lambda line: None) if out.exists() else None
    stored = sum(records.lookup(run_id(run)) is not None for run in runs_needed(plan, records.lookup)) if records else 0
    cells = tuple(map(_cell_size, plan.cells))
    share = max(0, counts.runs - stored) / max(1, len(first))
    return Preview(
        plan=plan,
        out=out,
        size=counts,
        cells=cells,
        stored=stored,
        seconds=seconds(first) * share,
        warnings=(*plan.warnings, *_too_large(cells, replicas), *([] if extend else _conflict(plan, records))),
    )


def _cell_size(cell: Cell) -> CellSize:
    run = next(iter(cell.candidates[0].runs.values()))
    return CellSize(cell.name, parameters(run), *state_floats(run))


def memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _too_large(cells: Sequence[CellSize], replicas: int) -> Iterator[str]:
    large = [(cell.params, cell.name) for cell in cells if (cell.params or 0) * replicas * BYTES > memory()]
    if large:
        most, name = max((params or 0, name) for params, name in large)
        need, has = (f"{number / 2**30:,.0f} GiB" for number in (most * replicas * BYTES, memory()))
        packed = f" x {replicas} runs together" * (replicas > 1)
        yield (
            f"{len(large)} of {len(cells)} cells may not fit into memory: {name} has {most:,} parameters"
            f"{packed}, {need} to train; this machine has {has}"
        )


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

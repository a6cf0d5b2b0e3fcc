"""What a plan would run, before anything runs. Imports no torch and writes nothing."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig, run_id
from mclab.config.strict import ConfigError
from mclab.plan import describe
from mclab.plan.difference import difference
from mclab.plan.plan import Cell, Plan
from mclab.plan.select import runs_needed
from mclab.plan.size import Size, size, tokens
from mclab.store import Records

#: Seconds on one core of a recent machine, fitted to runs of 1e3 to 1e5 parameters; good to a factor of two.
PER_STEP, PER_TOKEN, PER_TOKEN_AND_PARAMETER = 2e-3, 2e-6, 1.2e-10


@dataclass(frozen=True)
class CellSize:
    """A cell's name and what its first candidate holds: trained numbers, floats of state for one sequence."""

    name: str
    params: int
    state_fixed: int
    state_cached: int


@dataclass(frozen=True)
class Preview:
    """A plan, how much work it is, and how much of that is done.

    `seconds` are for what is left, on one CPU core. `warnings` are the plan's and, where the folder holds another
    grid, that it does.
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
        """The plan as `plan.json` has it, each cell with its size, and the totals."""
        plan = describe.as_dict(self.plan)
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


def preview(plan: Plan, out: Path, extend: bool = False) -> Preview:
    """Size up a plan for the run folder `out`, whose grid it may change with `extend`.

    Raises `ConfigError` where a file stands in the folder's place.
    """
    counts, first = size(plan), set(plan.first_runs())
    records = Records(out, say=lambda line: None) if out.exists() else None
    stored = sum(records.lookup(run_id(run)) is not None for run in runs_needed(plan, records.lookup)) if records else 0
    share = max(0, counts.runs - stored) / max(1, len(first))
    return Preview(
        plan=plan,
        out=out,
        size=counts,
        cells=tuple(map(_cell_size, plan.cells)),
        stored=stored,
        seconds=sum(map(_seconds, first)) * share,
        warnings=(*plan.warnings, *([] if extend else _conflict(plan, records))),
    )


def _cell_size(cell: Cell) -> CellSize:
    run = next(iter(cell.candidates[0].runs.values()))
    return CellSize(cell.name, parameters(run), *state_floats(run))


def _seconds(run: RunConfig) -> float:
    """Steps and tokens cost by the layer whatever its width; a token that is only read costs a third."""
    layers, looks = run.model.layers, run.train.steps / run.eval.every
    read = run.task.length * len(run.task.slices) * (looks * run.eval.valid + run.eval.test)
    token = layers * PER_TOKEN + parameters(run) * PER_TOKEN_AND_PARAMETER
    return run.train.steps * layers * PER_STEP + (tokens(run) + read / 3) * token


def _conflict(plan: Plan, records: Records | None) -> Iterator[str]:
    try:
        before = records.plan() if records else None
    except ConfigError as error:
        yield f"{error}; a run keeps it aside and goes on"
        return
    changed = difference(before, plan) if before else None
    if records and changed and changed.needs_extend:
        yield f"{records.path} holds another grid, this one is {changed}: it wants --extend or another --out"

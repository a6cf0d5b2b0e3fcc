"""The shape of a stored plan, down to the type of each value: a file edited by hand must not surprise a table."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mclab.config.strict import TOO_LARGE, refuse_large
from mclab.plan.paper import Better, Metric, Word

Whole = Annotated[int, Field(ge=0, lt=TOO_LARGE)]


class _Part(BaseModel):
    """Keys of a later version are let pass."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


class _Candidate(_Part):
    values: dict[str, JsonValue]
    config: dict[str, JsonValue]
    runs: Annotated[dict[str, str], Field(min_length=1)]


class _Cell(_Part):
    name: str
    values: dict[str, JsonValue]
    candidates: Annotated[list[_Candidate], Field(min_length=1)]


class _Select(_Part):
    over: Annotated[list[str], Field(min_length=1)]
    by: str
    seeds: Annotated[Whole, Field(gt=0)]


class _Until(_Part):
    looks: Annotated[list[Annotated[Whole, Field(gt=0)]], Field(min_length=1)]
    shares: list[Annotated[float, Field(gt=0, lt=1)]]
    even: Annotated[float, Field(gt=0, lt=1)] | None
    step: Annotated[float, Field(ge=0)]


class _Given(_Part):
    grid: str | None
    overrides: list[str]
    seeds: str | None
    smoke: bool
    quick: bool
    steps: Whole = 0
    only: list[str] = []


class _Column(_Part):
    name: str
    where: dict[str, list[JsonValue]]
    metric: Metric
    better: Better
    unit: str
    margin: float | None


class _PaperRow(_Part):
    name: str
    figures: list[float | Word | None]
    against: list[str]


class _Paper(_Part):
    source: str
    columns: Annotated[list[_Column], Field(min_length=1)]
    rows: list[_PaperRow]


class _Plan(_Part):
    name: str
    question: str | None
    given: _Given | None = None
    written: dict[str, JsonValue] | None = None
    versions: dict[str, Whole] = {}
    axes: list[str]
    named: bool
    seeds: Annotated[list[Whole], Field(min_length=1)]
    select: _Select | None
    until: _Until | None = None
    looked: list[Whole] = []
    listed: Whole
    notes: list[str]
    warnings: list[str]
    paper: _Paper | None = None
    cells: Annotated[list[_Cell], Field(min_length=1)]


def check(data: Any) -> None:
    """Raise `ValueError` with the reason where it is no plan."""
    try:
        plan = _Plan.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    for what, found in (("axes", plan.axes), ("seeds", plan.seeds), ("cells", [cell.name for cell in plan.cells])):
        if len(set(found)) < len(found):
            raise ValueError(f"{what}: one is there twice")
    if plan.until:
        _check_until(plan, plan.until)
    for cell in plan.cells:
        _check_cell(plan, cell)
    if plan.paper:
        _check_paper(plan.paper)


def _check_paper(paper: _Paper) -> None:
    names = [row.name for row in paper.rows]
    for row in paper.rows:
        if len(row.figures) != len(paper.columns):
            raise ValueError(f"paper: row {row.name} has {len(row.figures)} figures for {len(paper.columns)} columns")
        if strange := set(row.against) - set(names):
            raise ValueError(f"paper: row {row.name} is held against {min(strange)}, which is no row there")


def _check_until(plan: _Plan, until: _Until) -> None:
    if until.looks != sorted(set(until.looks)) or len(until.looks) != len(until.shares):
        raise ValueError("until: needs looks that increase, and a share for each")
    if until.looks[-1] != len(plan.seeds):
        raise ValueError(f"until: the last look is at {until.looks[-1]} seeds, the plan has {len(plan.seeds)}")


def _check_cell(plan: _Plan, cell: _Cell) -> None:
    refuse_large(cell.values)
    if strange := cell.values.keys() - set(plan.axes):
        raise ValueError(f"row {cell.name} sets {min(strange)}, which is no axis")
    for candidate in cell.candidates:
        refuse_large(candidate.values)
        if candidate.values.keys() != set(plan.select.over if plan.select else ()):
            raise ValueError(f"row {cell.name} chooses among other keys than select names")
        if candidate.runs.keys() != set(map(str, plan.seeds)):
            raise ValueError(f"row {cell.name} has runs of other seeds than the plan")

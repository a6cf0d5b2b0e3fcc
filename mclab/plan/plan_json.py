"""Write a plan as plain data for `plan.json` and read it back, so that a run folder can be read without its grid.

On reading, the type of each value is checked: a file that was edited by hand must not break a table later.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mclab.config.baselines import completed
from mclab.config.ids import SCIENCE
from mclab.config.parse import parse_run
from mclab.config.strict import TOO_LARGE, ConfigError, leaves, refuse_large
from mclab.plan.dotted import nested
from mclab.plan.paper import Better, Metric, Word
from mclab.plan.paper import as_dict as paper_as_dict
from mclab.plan.paper import from_dict as paper_from_dict
from mclab.plan.plan import Candidate, Cell, Given, Plan, Select
from mclab.plan.seeds import Until


def as_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain data: the complete config of every run by dotted path, and the run ids by seed.

    JSON keeps this data and its order exactly.
    """
    return {
        "name": plan.name,
        "question": plan.question,
        "science": SCIENCE,
        **({"versions": dict(plan.made_with)} if plan.made_with else {}),
        "given": _given_dict(plan.given) if plan.given else None,
        "written": None if plan.written is None else dict(plan.written),
        "axes": list(plan.axes),
        "named": plan.named,
        "seeds": list(plan.seeds),
        "select": _select(plan.select),
        **({"until": _until(plan.until)} if plan.until else {}),
        **({"looked": list(plan.looked)} if plan.looked else {}),
        "listed": plan.listed,
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
        **({"paper": paper_as_dict(plan.paper)} if plan.paper else {}),
        "cells": [
            {"name": cell.name, "values": cell.values, "candidates": [_candidate(each) for each in cell.candidates]}
            for cell in plan.cells
        ],
    }


def _select(select: Select | None) -> dict[str, Any] | None:
    return {"over": list(select.over), "by": select.by, "seeds": select.seeds} if select else None


def _until(until: Until) -> dict[str, Any]:
    return {"looks": list(until.looks), "shares": list(until.shares), "even": until.even, "step": until.step}


def _candidate(candidate: Candidate) -> dict[str, Any]:
    run = next(iter(candidate.runs.values()))
    return {
        "values": {path: _plain(value) for path, value in candidate.values.items()},
        "config": {path: _plain(value) for path, value in leaves(run) if path != "seed"},
        "runs": {str(seed): run_id for seed, run_id in candidate.run_ids().items()},
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def from_dict(data: Mapping[str, Any], where: str = "plan.json") -> Plan:
    """Return the plan that `as_dict` turned into `data`, with the stored run ids. Raises `ConfigError`."""
    try:
        _check(data)
        return _plan(data, where)
    except ConfigError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: this is not a plan of mclab ({error})") from None


def _plan(data: Mapping[str, Any], where: str) -> Plan:
    select = data["select"]
    return Plan(
        name=data["name"],
        question=data["question"],
        axes=tuple(data["axes"]),
        cells=tuple(_cell(cell, where) for cell in data["cells"]),
        select=Select(tuple(select["over"]), select["by"], select["seeds"]) if select else None,
        seeds=tuple(data["seeds"]),
        notes=tuple(data["notes"]),
        warnings=tuple(data["warnings"]),
        named=data["named"],
        listed=data["listed"],
        given=_given(data.get("given")),
        written=None if (shared := data.get("written")) is None else dict(shared),
        versions=dict(data.get("versions", {})),
        until=_rule(data.get("until")),
        looked=tuple(data.get("looked", ())),
        paper=paper_from_dict(found) if (found := data.get("paper")) else None,
    )


def _rule(data: Mapping[str, Any] | None) -> Until | None:
    return Until(tuple(data["looks"]), tuple(data["shares"]), data["even"], data["step"]) if data else None


def _given_dict(given: Given) -> dict[str, Any]:
    found = {**asdict(given), "overrides": list(given.overrides), "only": list(given.only)}
    return found if given.only else {key: value for key, value in found.items() if key != "only"}


def _given(data: Mapping[str, Any] | None) -> Given | None:
    if data is None:
        return None
    command = tuple(data["overrides"]), data["seeds"], data["smoke"], data["quick"]
    return Given(data["grid"], *command, data.get("steps", 0), tuple(data.get("only", ())))


def _cell(data: Mapping[str, Any], where: str) -> Cell:
    return Cell(data["name"], dict(data["values"]), tuple(_read(each, where) for each in data["candidates"]))


def _read(data: Mapping[str, Any], where: str) -> Candidate:
    run = parse_run(nested(completed(data["config"]), where), where)
    ids = {int(seed): run_id for seed, run_id in data["runs"].items()}
    values = {path: tuple(v) if isinstance(v, list) else v for path, v in data["values"].items()}
    return Candidate(values, {seed: run.model_copy(update={"seed": seed}) for seed in ids}, ids)


Whole = Annotated[int, Field(ge=0, lt=TOO_LARGE)]


class _Part(BaseModel):
    """A part of a stored plan. Unknown keys, which a later version may have added, are ignored."""

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


def _check(data: Any) -> None:
    """Raise `ValueError` with the reason if `data` is no plan."""
    try:
        plan = _Plan.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    for what, found in (("axes", plan.axes), ("seeds", plan.seeds), ("cells", [cell.name for cell in plan.cells])):
        if len(set(found)) < len(found):
            raise ValueError(f"{what}: one of them is listed twice")
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
            raise ValueError(f"paper: row {row.name} is compared with {min(strange)}, which is not a row of the block")


def _check_until(plan: _Plan, until: _Until) -> None:
    if until.looks != sorted(set(until.looks)) or len(until.looks) != len(until.shares):
        raise ValueError("until: the looks must increase, and each look must have a share")
    if until.looks[-1] != len(plan.seeds):
        raise ValueError(f"until: the last look is at {until.looks[-1]} seeds, but the plan has {len(plan.seeds)}")


def _check_cell(plan: _Plan, cell: _Cell) -> None:
    refuse_large(cell.values)
    if strange := cell.values.keys() - set(plan.axes):
        raise ValueError(f"row {cell.name} sets {min(strange)}, which is not an axis of the plan")
    for candidate in cell.candidates:
        refuse_large(candidate.values)
        if candidate.values.keys() != set(plan.select.over if plan.select else ()):
            raise ValueError(f"row {cell.name}: the keys of its candidates are not the keys of select.over")
        if candidate.runs.keys() != set(map(str, plan.seeds)):
            raise ValueError(f"row {cell.name}: the seeds of its runs are not the seeds of the plan")

"""A plan as plain data and back: what `plan.json` holds, so that a run folder can be read without its grid."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mclab.config.baselines import completed
from mclab.config.ids import SCIENCE
from mclab.config.parse import parse_run
from mclab.config.strict import ConfigError, leaves
from mclab.plan import paper
from mclab.plan.dotted import nested
from mclab.plan.plan import Candidate, Cell, Given, Plan, Select
from mclab.plan.plan_json import check
from mclab.plan.seeds import Until


def as_dict(plan: Plan) -> dict[str, Any]:
    """The plan with every run's whole config by dotted path and its id by seed. JSON keeps it exactly, in its order."""
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
        **({"paper": paper.as_dict(plan.paper)} if plan.paper else {}),
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
    """The plan that `as_dict` described, with the run ids that it was stored with. Raises `ConfigError`."""
    try:
        check(data)
        return _plan(data, where)
    except ConfigError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: is no plan of mclab ({error})") from None


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
        paper=paper.from_dict(found) if (found := data.get("paper")) else None,
    )


def _rule(data: Mapping[str, Any] | None) -> Until | None:
    return Until(tuple(data["looks"]), tuple(data["shares"]), data["even"], data["step"]) if data else None


def _given_dict(given: Given) -> dict[str, Any]:
    found = {**asdict(given), "overrides": list(given.overrides), "only": list(given.only)}
    return found if given.only else {key: value for key, value in found.items() if key != "only"}


def _given(data: Mapping[str, Any] | None) -> Given | None:
    if data is None:
        return None
    words = tuple(data["overrides"]), data["seeds"], data["smoke"], data["quick"]
    return Given(data["grid"], *words, data.get("steps", 0), tuple(data.get("only", ())))


def _cell(data: Mapping[str, Any], where: str) -> Cell:
    return Cell(data["name"], dict(data["values"]), tuple(_read(each, where) for each in data["candidates"]))


def _read(data: Mapping[str, Any], where: str) -> Candidate:
    run = parse_run(nested(completed(data["config"]), where), where)
    ids = {int(seed): run_id for seed, run_id in data["runs"].items()}
    values = {path: tuple(v) if isinstance(v, list) else v for path, v in data["values"].items()}
    return Candidate(values, {seed: run.model_copy(update={"seed": seed}) for seed in ids}, ids)

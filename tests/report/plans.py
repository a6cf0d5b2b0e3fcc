"""Grids and records made up by hand for the report's tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mclab.config.ids import run_id
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.plan.plan import Candidate, Cell, Plan, Select
from mclab.plan.select import Lookup
from tests.stored import scores, stored_run

GATE, SEGMENT, AGGREGATE = "model.mixer.gate", "model.mixer.segment", "model.mixer.aggregate"
QUESTION = "Does a cached memory need a gate that sees the segment?"
#: An accuracy, a status other than done, or nothing stored.
Result = float | str | None


def run(settings: Mapping[str, Any], seed: int) -> RunConfig:
    """A run from dotted keys, with two slices."""
    tree: dict[str, Any] = {"seed": seed}
    for path, value in {"task.pairs": [4, 8], **settings}.items():
        *parents, last = path.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return RunConfig.model_validate(tree)


def make_plan(
    cells: Sequence[Mapping[str, Any]],
    seeds: Sequence[int] = range(5),
    over: Sequence[Mapping[str, Any]] = ({},),
    base: Mapping[str, Any] | None = None,
    question: str | None = QUESTION,
    names: Sequence[str] | None = None,
    **more: Any,
) -> Plan:
    """A plan with a cell per mapping and a candidate per entry of `over`."""
    axes = tuple(dict.fromkeys(path for cell in cells for path in cell))
    made = []
    for place, values in enumerate(cells):
        candidates = tuple(
            Candidate(dict(extra), {seed: run({**(base or {}), **values, **extra}, seed) for seed in seeds})
            for extra in over
        )
        name = names[place] if names else ", ".join(f"{k.rpartition('.')[2]}={v}" for k, v in values.items())
        made.append(Cell(name, dict(values), candidates))
    select = Select(tuple(over[0]), "valid.accuracy", 2) if over[0] else None
    return Plan("gating", question, axes, tuple(made), select, tuple(seeds), **more)


def record(config: RunConfig, result: float | str, **more: Any) -> StoredRun:
    """A record with the accuracy on every slice, or with a status and nothing measured."""
    status: Any = result if isinstance(result, str) else "done"
    parts = {} if isinstance(result, str) else scores(config.task.slices, result, 1.0 - result)
    figures = {
        "steps": 600,
        "valid": parts,
        "test": parts,
        "overlap": 0.0,
        "params": 12345,
        "state_fixed": 1024,
        "state_cached": 7168,
        "tokens_per_s": 80000.0,
        "wall_s": 10.0,
        "diverged_step": 120 if status == "diverged" else None,
        "error": "RuntimeError: bad\nout of luck" if status == "failed" else None,
        "provenance": {"device": "cpu", "device_name": "a cpu", "torch": "2.11.0", "mclab": "0.1.0"},
    }
    return stored_run(config, status, **{**figures, **more})


def store(plan: Plan, results: Sequence[Sequence[Result]], candidate: int = 0) -> dict[str, StoredRun]:
    """Records of one candidate: a row of results per cell, a result per seed."""
    records = {}
    for cell, row in zip(plan.cells, results, strict=True):
        for (_, config), result in zip(cell.candidates[candidate].runs.items(), row, strict=True):
            if result is not None:
                records[run_id(config)] = record(config, result)
    return records


def gates(*results: Sequence[Result], **more: Any) -> tuple[Plan, Lookup]:
    """A grid over up to three gates, the first being the baseline."""
    cells = [{GATE: gate} for gate in ("context", "input", "none")[: len(results)]]
    plan = make_plan(cells, seeds=range(len(results[0])), **more)
    return plan, store(plan, results).get


def mapped(plan: Plan, records: Mapping[str, StoredRun], change: Callable[[StoredRun], dict[str, Any]]) -> Lookup:
    """The records, each with the fields replaced that `change` gives for it."""
    return {key: replace(old, **change(old)) for key, old in records.items()}.get

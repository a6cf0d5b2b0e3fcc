"""The stored runs of a folder, one object each: what `mclab list` shows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.run import UNSCIENTIFIC, RunConfig, inert
from mclab.config.strict import leaves
from mclab.plan.plan import Plan
from mclab.report.names import column_names
from mclab.store import Records
from mclab.store.record import config_of

Record = Mapping[str, Any]
#: What a record says of its run beside the scores, under the names that runs.csv gives it.
FIGURES = {
    "steps_done": "steps",
    **{key: key for key in ("steps_to_99", "diverged_step", "params", "tokens_per_s", "wall_s", "error")},
}


@dataclass(frozen=True)
class _Run:
    """A record with its keys as the plan's author wrote them, else as they stand in it, and its cell's name."""

    record: Record
    keys: Mapping[str, Any]
    cell: str | None = None


def listing(records: Records, plan: Plan | None) -> list[dict[str, Any]]:
    """The plan's runs in its order, then others: id, status, seed, the keys that vary, the metrics.

    A key stands under its last word, as in the tables; what a run does not have is `None`.
    """
    stored = {record["run_id"]: record for record in records.scan()}
    runs = list(_planned(plan, stored)) if plan else []
    known = {run.record["run_id"] for run in runs}
    others = [_Run(record, _live(config_of(dict(record)))) for name, record in stored.items() if name not in known]
    names = column_names(_varied(plan, [*runs, *others] if others else []))
    return [_row(run, names, bool(plan and plan.named)) for run in [*runs, *others]]


def _planned(plan: Plan, stored: Mapping[str, Record]) -> Iterator[_Run]:
    """Every stored run of the plan once, under the first cell that has it."""
    seen: set[str] = set()
    for cell in plan.cells:
        for candidate in cell.candidates:
            for seed, name in candidate.run_ids().items():
                if name in stored and name not in seen:
                    seen.add(name)
                    keys = {**_live(candidate.runs[seed]), **cell.values, **candidate.values}
                    yield _Run(stored[name], keys, cell.name)


def _live(run: RunConfig) -> dict[str, Any]:
    """The run's keys without its seed and without those that change nothing in it."""
    dead = inert(run) | UNSCIENTIFIC
    return {path: value for path, value in leaves(run) if path != "seed" and path not in dead}


def _varied(plan: Plan | None, runs: Sequence[_Run]) -> list[str]:
    """What the plan varies and chooses, then what else differs among `runs`."""
    own = [*plan.axes, *(plan.select.over if plan.select else ())] if plan else []
    paths = dict.fromkeys(path for run in runs for path in run.keys)
    return [*own, *(path for path in paths if path not in own and _differs(path, runs))]


def _differs(path: str, runs: Sequence[_Run]) -> bool:
    return len({json.dumps(run.keys.get(path)) for run in runs}) > 1


def _row(run: _Run, names: Mapping[str, str], named: bool) -> dict[str, Any]:
    record = run.record
    return {
        **{key: record[key] for key in ("run_id", "status", "seed")},
        **({"name": run.cell} if named else {}),
        **{name: run.keys.get(path) for path, name in names.items()},
        **{
            f"{split}_{metric}": record[split].get(ALL, {}).get(metric)
            for split in ("valid", "test")
            for metric in ("accuracy", "loss")
        },
        **{name: record[key] for name, key in FIGURES.items()},
    }

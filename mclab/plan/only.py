"""Apply `--only key=value`: keep some cells of a plan, as if the grid had no others."""

import re
from collections.abc import Sequence
from dataclasses import replace

from mclab.config.error import did_you_mean
from mclab.config.keys import by_path, shown
from mclab.config.strict import ConfigError, leaves
from mclab.plan.plan import CHANGE, Cell, Plan, row_name

#: Separates `key=value,key=value`. A value may contain commas, so a comma separates only where another `key=` follows.
_PAIRS = re.compile(r",\s*(?=[\w.]+=)")


def narrowed(plan: Plan, only: Sequence[str]) -> Plan:
    """Return the plan with only the cells that match all `key=value` texts; of several texts for one key, one must
    match.

    A key is an axis, by its path or the last part of it; or any other key of a run, by its path; or `change`, for the
    name of a row. Raises `ConfigError` for a key or a value that the plan does not have, and if no cell matches.
    """
    if not only:
        return plan
    wanted: dict[str, set[str]] = {}
    for text in only:
        path, value = _parsed(plan, text)
        wanted.setdefault(path, set()).add(value)
    cells = tuple(
        cell for cell in plan.cells if all(_value(plan, cell, path) in values for path, values in wanted.items())
    )
    told = " ".join(f"--only {text}" for text in only)
    if not cells:
        raise ConfigError(f"{told}: no cell has all of these values")
    note = f"{told}: {len(cells)} of {len(plan.cells)} cells"
    given = replace(plan.given, only=tuple(only)) if plan.given else None
    return replace(plan, cells=cells, listed=len(cells), notes=(*plan.notes, note), given=given)


def _parsed(plan: Plan, text: str) -> tuple[str, str]:
    """Return the path and the value that `text` gives, in the form in which the plan's cells have them."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise ConfigError(f"--only: {text}: must be key=value, e.g. --only task.name=mqar")
    path = _path(plan, key)
    there = list(dict.fromkeys(found for cell in plan.cells if (found := _value(plan, cell, path)) is not None))
    if value not in there:
        parts = _PAIRS.split(text)
        if len(parts) > 1:
            several = " ".join(f"--only {part}" for part in parts)
            raise ConfigError(f"--only: {text}: takes one key=value; repeat the option for several: {several}")
        raise ConfigError(
            f"--only: {text}: no cell has {path} {value}; the values in the cells are {', '.join(there) or 'none'}"
        )
    return path, value


def _path(plan: Plan, key: str) -> str:
    last = [path for path in plan.axes if key in (path, path.rpartition(".")[2])]
    if len(last) == 1:
        return last[0]
    if key in by_path() or key == CHANGE:
        return key
    hint = (
        did_you_mean(key, [*plan.axes, *by_path()])
        or f"the keys that the grid varies are {', '.join(plan.axes) or 'none'}"
    )
    raise ConfigError(f"--only: {key} is not a key of this grid; {hint}")


def _value(plan: Plan, cell: Cell, path: str) -> str | None:
    """Return the value of a cell at `path`, as a grid's author writes it; `None` if the cell has none."""
    if path == CHANGE:
        return row_name(cell) if plan.named or CHANGE in plan.axes else None
    found = cell.values if path in plan.axes else dict(leaves(next(iter(cell.candidates[0].runs.values()))))
    return shown(found[path]) if path in found else None

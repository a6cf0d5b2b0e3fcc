"""Another baseline than the first cell: named by its values, put first, so that all rows are compared with it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mclab.config.guess import did_you_mean
from mclab.config.strict import ConfigError
from mclab.plan.plan import Cell, Plan
from mclab.report.names import column_names, value_text
from mclab.report.table.rows import cell_values

#: Words such as gate=input; a value may be in quotes.
_WORD = re.compile(r"""([^\s=,]+)=("[^"]*"|'[^']*'|[^\s]+)""")
_MOST_NAMED = 3


def with_baseline(plan: Plan, text: str | None) -> Plan:
    """The plan with the cell first that `text` names: `gate=input segment=4`, or the name of a change.

    Keys are columns of the table or whole paths, values as the table shows them. Raises `ConfigError` where no cell
    fits or several do, with what would, and for a sequential grid, whose looks are at the first row's differences.
    """
    if text is None:
        return plan
    if plan.until:
        raise ConfigError(
            "--baseline: seeds until told are planned against the first row; put that one first in the grid"
        )
    named = [cell for cell in plan.cells if cell.name == text.strip()]
    fitting = named or _fitting(plan, _wanted(plan, text), text)
    if len(fitting) > 1:
        names = "; ".join(cell.name for cell in fitting[:_MOST_NAMED])
        raise ConfigError(f"--baseline: {text!r} fits {len(fitting)} cells ({names}…); give more of the values")
    return replace(plan, cells=(fitting[0], *(cell for cell in plan.cells if cell is not fitting[0])))


def _wanted(plan: Plan, text: str) -> dict[str, str]:
    """Path -> value, as given."""
    names = column_names(plan.axes)
    known = {**{name: path for path, name in names.items()}, **{path: path for path in plan.axes}}
    left = _WORD.sub("", text).replace(",", " ").split()
    if left or not text.strip():
        rows = [cell.name for cell in plan.cells] if plan.named else []
        hint = did_you_mean(text.strip(), rows, "; ") or f"write {' '.join(f'{name}=...' for name in names.values())}"
        raise ConfigError(f"--baseline: {text!r} names no cell{hint if hint.startswith(';') else f'; {hint}'}")
    wanted = {key: value.rstrip(",").strip("\"'") for key, value in _WORD.findall(text)}
    for key in wanted:
        if key not in known:
            hint = did_you_mean(key, known, "; ") or f"; this grid varies {', '.join(names.values())}"
            raise ConfigError(f"--baseline: {key}: is no axis of this grid{hint}")
    return {known[key]: value for key, value in wanted.items()}


def _fitting(plan: Plan, wanted: Mapping[str, str], text: str) -> list[Cell]:
    values = {id(cell): cell_values(cell, plan.axes) for cell in plan.cells}
    fitting = [cell for cell in plan.cells if all(_is(values[id(cell)], path, v) for path, v in wanted.items())]
    if fitting:
        return fitting
    for path, value in wanted.items():
        seen = dict.fromkeys(value_text(each[path]) for each in values.values() if path in each)
        if not any(_is(each, path, value) for each in values.values()):
            hint = did_you_mean(value, seen, "; ") or f"; there are {', '.join(seen)}"
            raise ConfigError(f"--baseline: no cell has {path.rpartition('.')[2]}={value}{hint}")
    raise ConfigError(f"--baseline: no cell has all of {text!r}")


def _is(values: Mapping[str, Any], path: str, text: str) -> bool:
    """Whether a cell has this value: as a text, or as the same number."""
    if path not in values:
        return False
    shown = value_text(values[path])
    try:
        return shown == text or float(shown) == float(text)
    except ValueError:
        return False

"""Find the baseline of each row (the first row, or one that the user names) and test the paired difference from it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from mclab.config.error import did_you_mean
from mclab.config.stored import clashing
from mclab.config.strict import ConfigError
from mclab.plan.plan import CHANGE, Cell, Plan
from mclab.report.stats import SAME, Difference, holm, paired
from mclab.report.table.accuracy import SOLVED, same_function, scores
from mclab.report.table.row import Row, cell_values
from mclab.report.text import column_names, value_text

#: A pair such as gate=input; the value may be in quotes.
_WORD = re.compile(r"""([^\s=,]+)=("[^"]*"|'[^']*'|[^\s]+)""")
_MOST_NAMED = 3


def baselines_of(rows: Sequence[Row]) -> list[int | None]:
    """Return for each row the index of its baseline in `rows`, which is 0 unless changes are crossed with other axes.

    With crossed changes it is the row with the first change and the same other values; `None` if there is no such row.
    """
    first = rows[0].values.get(CHANGE)
    own = {
        _other_values(row): place for place, row in reversed(list(enumerate(rows))) if row.values.get(CHANGE) == first
    }
    return [own.get(_other_values(row)) for row in rows]


def _other_values(row: Row) -> str:
    """Return as text the values on the axes that are crossed with the changes.

    Only rows with equal texts are compared.
    """
    if CHANGE not in row.values:
        return ""
    return json.dumps({path: value for path, value in row.values.items() if path != CHANGE}, sort_keys=True)


def apart(row: Row, baseline: Row) -> Literal["slices", "versions"] | None:
    """Return why a row is not compared with its baseline; `None` if it is.

    "slices": the means are over different slices. "versions": the runs were made with different versions of a formula.
    """
    if set(row.own) != set(baseline.own):
        return "slices"
    return "versions" if clashing([*row.records.values(), *baseline.records.values()]) else None


def compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their differences from their baselines, paired by seed.

    Holm's adjustment is over all rows for which `apart` is `None`.
    """
    others = {place: base for place, base in enumerate(baselines_of(rows)) if place != base}
    aside = {place: base is not None and apart(rows[place], rows[base]) for place, base in others.items()}
    gaps = {
        place: difference_of(rows[place], rows[base])
        for place, base in others.items()
        if base is not None and not aside[place]
    }
    adjusted = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    compared = list(rows)
    for place, base in others.items():
        row, gap = rows[place], gaps.get(place)
        if base is None or gap is None:
            compared[place] = replace(row, difference=Difference(0, aside[place] or "alone"))
        else:
            high = is_high(row) and is_high(rows[base])
            why = unmended(row, rows[base])
            compared[place] = replace(row, difference=gap, p=adjusted[place], ceiling=high, unmended=why)
    return compared


def difference_of(row: Row, baseline: Row) -> Difference:
    """Return the difference row - baseline, paired by seed."""
    gap = paired(scores(row.records), scores(baseline.records))
    if row.lost and baseline.lost:
        return Difference(gap.n, "lost")
    if gap.kind != "same":
        return gap
    both = scores(row.records).keys() & scores(baseline.records).keys()
    equal = all(same_function(row.records[seed], baseline.records[seed]) for seed in both)
    return replace(gap, kind="identical") if equal else gap


def unmended(row: Row, base: Row) -> str:
    """Return the marks because of which a row gets no verdict: its own, else those of its baseline, else ""."""
    if row.marks or not base.marks:
        return ", ".join(row.marks)
    return f"the baseline: {', '.join(base.marks)}"


def is_high(row: Row) -> bool:
    """Return whether the row's mean accuracy is at the ceiling (0.99 or more)."""
    return row.accuracy.mean is not None and row.accuracy.mean >= SOLVED - SAME


def with_baseline(plan: Plan, text: str | None) -> Plan:
    """Return the plan with another cell in first place: the one that `text` names, by `gate=input segment=4` or by a
    change.

    Keys are columns of the table or full paths; values are written as the table shows them. Raises `ConfigError` if no
    cell matches or several do (the message says what would match), and for a sequential grid, whose tests are planned
    against its first row.
    """
    if text is None:
        return plan
    if plan.until:
        raise ConfigError(
            "--baseline: a grid with seeds: {until: told} compares every row with the first one, as planned; "
            "to use another baseline, put its row first in the grid"
        )
    named = [cell for cell in plan.cells if cell.name == text.strip()]
    fitting = named or _fitting(plan, _wanted(plan, text), text)
    if len(fitting) > 1:
        names = "; ".join(cell.name for cell in fitting[:_MOST_NAMED])
        raise ConfigError(
            f"--baseline: {text!r} fits {len(fitting)} cells ({names}…); give more values, so that one cell is left"
        )
    return replace(plan, cells=(fitting[0], *(cell for cell in plan.cells if cell is not fitting[0])))


def _wanted(plan: Plan, text: str) -> dict[str, str]:
    """Return {path: value} from `text`. Raises `ConfigError` if it has no key=value or names an unknown key."""
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
            raise ConfigError(f"--baseline: {key} is no axis of this grid{hint}")
    return {known[key]: value for key, value in wanted.items()}


def _fitting(plan: Plan, wanted: Mapping[str, str], text: str) -> list[Cell]:
    values = {id(cell): cell_values(cell, plan.axes) for cell in plan.cells}
    fitting = [cell for cell in plan.cells if all(_has_value(values[id(cell)], path, v) for path, v in wanted.items())]
    if fitting:
        return fitting
    for path, value in wanted.items():
        seen = dict.fromkeys(value_text(each[path]) for each in values.values() if path in each)
        if not any(_has_value(each, path, value) for each in values.values()):
            hint = did_you_mean(value, seen, "; ") or f"; there are {', '.join(seen)}"
            raise ConfigError(f"--baseline: no cell has {path.rpartition('.')[2]}={value}{hint}")
    raise ConfigError(f"--baseline: no cell has all of {text!r}")


def _has_value(values: Mapping[str, Any], path: str, text: str) -> bool:
    """Return whether a cell has the value `text` at `path`, as the same text or the same number."""
    if path not in values:
        return False
    shown = value_text(values[path])
    try:
        return shown == text or float(shown) == float(text)
    except ValueError:
        return False

"""The baseline of each row, the first row or another that is named, and the difference from it by a paired test."""

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

#: Words such as gate=input; a value may be in quotes.
_WORD = re.compile(r"""([^\s=,]+)=("[^"]*"|'[^']*'|[^\s]+)""")
_MOST_NAMED = 3


def baselines_of(rows: Sequence[Row]) -> list[int | None]:
    """The place of each row's baseline: the first row; with crossed changes the first change beside it, if any."""
    first = rows[0].values.get(CHANGE)
    own = {
        _other_values(row): place for place, row in reversed(list(enumerate(rows))) if row.values.get(CHANGE) == first
    }
    return [own.get(_other_values(row)) for row in rows]


def _other_values(row: Row) -> str:
    """What rows that are compared with each other have in common: the other values beside a crossed change."""
    if CHANGE not in row.values:
        return ""
    return json.dumps({path: value for path, value in row.values.items() if path != CHANGE}, sort_keys=True)


def apart(row: Row, baseline: Row) -> Literal["slices", "versions"] | None:
    """Why a row is not compared: a mean over other slices, or of another formula, is another quantity."""
    if set(row.own) != set(baseline.own):
        return "slices"
    return "versions" if clashing([*row.records.values(), *baseline.records.values()]) else None


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with their differences to their baseline, paired by seed; Holm over all that have its slices."""
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
    """The row less its baseline, paired by seed."""
    gap = paired(scores(row.records), scores(baseline.records))
    if row.lost and baseline.lost:
        return Difference(gap.n, "lost")
    if gap.kind != "same":
        return gap
    both = scores(row.records).keys() & scores(baseline.records).keys()
    equal = all(same_function(row.records[seed], baseline.records[seed]) for seed in both)
    return replace(gap, kind="identical") if equal else gap


def unmended(row: Row, base: Row) -> str:
    """What keeps a row without a verdict: its own marks, or else its baseline's; nothing where it may have one."""
    if row.marks or not base.marks:
        return ", ".join(row.marks)
    return f"the baseline: {', '.join(base.marks)}"


def is_high(row: Row) -> bool:
    """True at the ceiling."""
    return row.accuracy.mean is not None and row.accuracy.mean >= SOLVED - SAME


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
    """Whether a cell has this value: as a text, or as the same number."""
    if path not in values:
        return False
    shown = value_text(values[path])
    try:
        return shown == text or float(shown) == float(text)
    except ValueError:
        return False

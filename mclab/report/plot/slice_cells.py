"""Cells by slice: the keys of a slice (`length=128 pairs=32`) as numbers to draw along, and what makes a line."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mclab.config.strict import leaves
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import full_label, natural, plain, value_text

#: A key and its value in a slice's name, up to the next key.
_WORD = re.compile(r"([\w.]+)=(.*?)(?=\s[\w.]+=|$)")


@dataclass(frozen=True)
class Spot:
    """One cell on one slice. `at` holds the task's keys as they are there: the slice's own words, else the cell's."""

    row: Row
    part: str
    at: dict[str, Any]


@dataclass(frozen=True)
class Group:
    """What one line or one panel shows: the spots of one row, or of rows that differ in the drawn keys alone."""

    label: str
    spots: tuple[Spot, ...]


def spots(summary: Summary) -> list[Spot]:
    """Every cell on each of the slices that it has a score on, in the table's order."""
    scored = [(row, part) for row in summary.rows for part in summary.slices if part in row.slices]
    return [Spot(row, part, _keys_at(row, part)) for row, part in scored if row.slices[part].n]


def _keys_at(row: Row, part: str) -> dict[str, Any]:
    task = row.run.task
    at = {key: plain(value) for key, value in leaves(task)}
    preset = getattr(task, "shape", None)  # what fills the keys that are null
    filled = {key: getattr(preset, key, None) for key, value in at.items() if value is None}
    return at | filled | keys_of(part)


def keys_of(part: str) -> dict[str, Any]:
    """`length=128 haystack=text` as keys and values; numbers are numbers."""
    return {key: _value(text) for key, text in _WORD.findall(part)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def varied(found: Iterable[Spot], within_rows: bool = True) -> list[str]:
    """Keys that take several values, in one row or (`within_rows` false) at all; those of own slices first."""
    values: dict[tuple[Any, str], set[str]] = {}
    for spot in found:
        for key, value in sorted(spot.at.items(), key=lambda item: item[0] not in keys_of(spot.part)):
            values.setdefault((id(spot.row) if within_rows else None, key), set()).add(value_text(value))
    return list(dict.fromkeys(key for (_, key), known in values.items() if len(known) > 1))


def own_key(row: Row) -> str | None:
    """The key that the task's own slices are values of."""
    return next((key for part in row.own for key in keys_of(part)), None)


def values_along(found: Iterable[Spot], key: str) -> list[Any]:
    """The distinct values of a key, small to large."""
    distinct = {value_text(spot.at[key]): spot.at[key] for spot in found if key in spot.at}
    return [distinct[text] for text in sorted(distinct, key=natural)]


def groups(summary: Summary, found: Sequence[Spot], keys: Sequence[str]) -> list[Group]:
    """The spots by row; rows that differ in nothing but `keys` are one group where none of their spots coincide."""
    paths = {f"task.{key}" for key in keys}
    merged: dict[str, list[Spot]] = {}
    for spot in found:
        merged.setdefault(_label(summary, spot.row, paths), []).append(spot)
    if any(_coincide(group) for group in merged.values()):
        merged = {}
        for spot in found:
            merged.setdefault(spot.row.label, []).append(spot)
    return [Group(label, tuple(group)) for label, group in merged.items()]


def _label(summary: Summary, row: Row, drawn: set[str]) -> str:
    if summary.plan.named or not drawn & row.values.keys():
        return row.label
    told = {path: value for path, value in row.values.items() if path not in drawn}
    return full_label(told, summary.names) if told else "all rows"


def _coincide(group: Sequence[Spot]) -> bool:
    """True where two spots of different rows have the same keys."""
    texts = [tuple(sorted((key, value_text(value)) for key, value in spot.at.items())) for spot in group]
    return len(set(texts)) < len(texts)


def families(found: Sequence[Spot], drawn: Sequence[str]) -> dict[str, list[Spot]]:
    """The spots by what else varies: `length=128, haystack=text` without the keys that are drawn; small to large."""
    others = [key for key in varied(found) if key not in drawn]
    parted: dict[str, list[Spot]] = {}
    for spot in found:
        text = ", ".join(f"{key}={value_text(spot.at[key])}" for key in others if key in spot.at)
        parted.setdefault(text, []).append(spot)
    return {text: parted[text] for text in sorted(parted, key=natural)}

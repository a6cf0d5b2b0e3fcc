"""Parse the keys in the names of slices (`length=128 pairs=32`), and group accuracies by cell and slice."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mclab.config.strict import leaves
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import full_label, natural, plain, value_text

#: A key and its value in a slice's name; the value ends before the next key.
_WORD = re.compile(r"([\w.]+)=(.*?)(?=\s[\w.]+=|$)")


@dataclass(frozen=True)
class Spot:
    """The accuracy of one cell on one slice. `at` holds the keys of the task with their values on this slice."""

    row: Row
    part: str
    at: dict[str, Any]


@dataclass(frozen=True)
class Group:
    """The spots of a line or a panel: those of one row, or of several rows that differ only in drawn keys."""

    label: str
    spots: tuple[Spot, ...]


def spots(summary: Summary) -> list[Spot]:
    """Return a spot for each cell and each slice on which it has a score, in the table's order."""
    scored = [(row, part) for row in summary.rows for part in summary.slices if part in row.slices]
    return [Spot(row, part, _keys_at(row, part)) for row, part in scored if row.slices[part].n]


def _keys_at(row: Row, part: str) -> dict[str, Any]:
    task = row.run.task
    at = {key: plain(value) for key, value in leaves(task)}
    preset = getattr(task, "shape", None)  # The preset's values replace those that are null.
    filled = {key: getattr(preset, key, None) for key, value in at.items() if value is None}
    return at | filled | keys_of(part)


def keys_of(part: str) -> dict[str, Any]:
    """Return {key: value} from the name of a slice such as `length=128 haystack=text`; numbers become numbers."""
    return {key: _value(text) for key, text in _WORD.findall(part)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def varied(found: Iterable[Spot], within_rows: bool = True) -> list[str]:
    """Return the keys that take several values within one row or, without `within_rows`, over all rows.

    Keys that occur in the names of slices come first.
    """
    values: dict[tuple[Any, str], set[str]] = {}
    for spot in found:
        for key, value in sorted(spot.at.items(), key=lambda item: item[0] not in keys_of(spot.part)):
            values.setdefault((id(spot.row) if within_rows else None, key), set()).add(value_text(value))
    return list(dict.fromkeys(key for (_, key), known in values.items() if len(known) > 1))


def own_key(row: Row) -> str | None:
    """Return the key in which the task's own slices differ; `None` if their names have no key."""
    return next((key for part in row.own for key in keys_of(part)), None)


def values_along(found: Iterable[Spot], key: str) -> list[Any]:
    """Return the different values of a key in ascending order."""
    distinct = {value_text(spot.at[key]): spot.at[key] for spot in found if key in spot.at}
    return [distinct[text] for text in sorted(distinct, key=natural)]


def groups(summary: Summary, found: Sequence[Spot], keys: Sequence[str]) -> list[Group]:
    """Return the spots in groups, one group for each row. Rows that differ only in `keys` share a group.

    They do not share it if two of its spots would have the same keys and values.
    """
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
    """Return whether two spots of the group have the same keys and values."""
    texts = [tuple(sorted((key, value_text(value)) for key, value in spot.at.items())) for spot in group]
    return len(set(texts)) < len(texts)


def families(found: Sequence[Spot], drawn: Sequence[str]) -> dict[str, list[Spot]]:
    """Return the spots by the values of the other varied keys, e.g. `length=128, haystack=text`, in ascending order.

    Keys in `drawn` do not count as other keys.
    """
    others = [key for key in varied(found) if key not in drawn]
    parted: dict[str, list[Spot]] = {}
    for spot in found:
        text = ", ".join(f"{key}={value_text(spot.at[key])}" for key in others if key in spot.at)
        parted.setdefault(text, []).append(spot)
    return {text: parted[text] for text in sorted(parted, key=natural)}

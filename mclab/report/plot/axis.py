"""Which numeric key a grid can be drawn along, and the lines that its cells then make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mclab.report.names import full_label, is_number, plain, value_text
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary

#: Fewer values than this make no line, and more lines than this cannot be told apart.
LEAST_VALUES, MOST_LINES, MOST_DASHES = 3, 8, 4


@dataclass(frozen=True)
class Axis:
    """The numeric key along x, the keys that tell lines apart, and the keys that follow x (zipped with it)."""

    path: str
    others: tuple[str, ...]
    followers: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Cells in the order of x. `xs` is empty for a cell in which the numeric key means nothing: a reference.

    `colour` and `dash` are places in the plot's palettes.
    """

    label: str
    xs: tuple[float, ...]
    rows: tuple[Row, ...]
    colour: int
    dash: int


def numeric_axis(summary: Summary) -> Axis | None:
    """The key with the most numbers, where it makes a plot: three or more values, few enough lines."""
    if summary.plan.named:
        return None
    paths = [path for path in summary.plan.axes if _numeric(summary, path)]
    for path in sorted(paths, key=lambda path: -len(_values(summary, path))):
        axis = _split(summary, path)
        if len(lines_along(summary, axis)) <= MOST_LINES:
            return axis
    return None


def _values(summary: Summary, path: str) -> set[Any]:
    return {plain(row.values[path]) for row in summary.rows if path in row.values}


def _numeric(summary: Summary, path: str) -> bool:
    known = [row.values[path] for row in summary.rows if path in row.values]
    enough = 2 * len(known) >= len(summary.rows)
    return enough and all(map(is_number, known)) and len(_values(summary, path)) >= LEAST_VALUES


def _split(summary: Summary, path: str) -> Axis:
    """The other keys: those with one value for each x follow it, the rest tell lines apart."""
    others = [other for other in summary.plan.axes if other != path]
    followers = tuple(other for other in others if _follows(summary, other, path))
    return Axis(path, tuple(other for other in others if other not in followers), followers)


def _follows(summary: Summary, other: str, path: str) -> bool:
    rows = [row for row in summary.rows if path in row.values]
    pairs = {(plain(row.values[path]), value_text(row.values.get(other))) for row in rows}
    return len({text for _, text in pairs}) > 1 and len(pairs) == len(_values(summary, path))


def followed(summary: Summary, path: str, other: str) -> list[str]:
    """The values of `other`, zipped with `path`, in the order of `path`."""
    pairs = {plain(row.values[path]): value_text(row.values.get(other)) for row in summary.rows if path in row.values}
    return [pairs[x] for x in sorted(pairs)]


def lines_along(summary: Summary, axis: Axis) -> list[Line]:
    """The cells, gathered into lines and references, in the plan's order."""
    names = {path: summary.names[path] for path in axis.others}
    groups: dict[tuple[bool, str], list[Row]] = {}
    for row in summary.rows:
        told = {path: row.values[path] for path in axis.others if path in row.values}
        groups.setdefault((axis.path in row.values, full_label(told, names)), []).append(row)
    styles = _styles(axis, [rows[0] for rows in groups.values()])
    return [
        _line(text, rows, axis.path if along else None, style)
        for ((along, text), rows), style in zip(groups.items(), styles, strict=True)
    ]


def _styles(axis: Axis, firsts: Sequence[Row]) -> list[tuple[int, int]]:
    """Colour and dash of each line: with two keys the one with more values is told by colour, the other by dash."""
    texts = [[value_text(row.values.get(path)) for path in axis.others] for row in firsts]
    if len(axis.others) != 2:
        return [(number, 0) for number in range(len(firsts))]
    distinct = [list(dict.fromkeys(pair[side] for pair in texts)) for side in (0, 1)]
    hue = 0 if len(distinct[0]) > len(distinct[1]) else 1
    if len(distinct[1 - hue]) > MOST_DASHES:
        return [(number, 0) for number in range(len(firsts))]
    return [(distinct[hue].index(pair[hue]), distinct[1 - hue].index(pair[1 - hue])) for pair in texts]


def _line(text: str, rows: Sequence[Row], path: str | None, style: tuple[int, int]) -> Line:
    if path is None:
        return Line(text, (), tuple(rows), *style)
    ordered = sorted(rows, key=lambda row: float(plain(row.values[path])))
    return Line(text, tuple(float(plain(row.values[path])) for row in ordered), tuple(ordered), *style)

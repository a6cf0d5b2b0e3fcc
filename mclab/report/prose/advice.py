"""Advice on what to do next, as commands or lines of the grid that can be pasted."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mclab.config.keys import shown
from mclab.report.stats import ALPHA
from mclab.report.table.accuracy import AT_CHANCE, FEW_STARTED, IMPROVING
from mclab.report.table.row import LR, Row
from mclab.report.table.summary import Summary
from mclab.report.text import seeds_text

#: The beginning of the sentence that proposes more seeds.
MORE_SEEDS = "More seeds may tell: --seeds "


def more_seeds_may_tell(summary: Summary, unclear: Sequence[Row]) -> bool:
    """Return whether more seeds may show a difference between the first row and one of the `unclear` rows.

    A row does not count if it is at the ceiling, if all its runs diverged, or if it has a mark (e.g. at chance). The
    result is `False` for a sequential grid, which adds its seeds itself.
    """
    first = summary.rows[0]
    return not (first.lost or summary.looks) and any(not (row.ceiling or row.lost or row.unmended) for row in unclear)


def commands(summary: Summary, again: str) -> list[str]:
    """Return lines on what to do next, which can be pasted. `again` is the command that made the table, without seeds.

    First come lines that may remove marks: longer training, a choice of the learning rate if runs did not learn, a
    wider range if a value at its end was chosen. Then more seeds, if the result of a row is not clear.
    """
    if not summary.rows:
        return []
    marks = {mark for row in summary.rows for mark in row.marks}
    found = list(_longer(summary, again)) if marks & {AT_CHANCE, FEW_STARTED, IMPROVING} else []
    if marks & {AT_CHANCE, FEW_STARTED}:
        found += _rates(summary, again)
    if any(row.edges for row in summary.rows):
        found.append(f"widen the range, in the grid: {wider(summary)}")
        found.append(f"and then: {again}{_same_seeds(summary)} --extend")
    if wants_seeds(summary):
        found.append(f"add seeds: {again} --seeds {more_seeds(summary.plan.seeds)}")
    return found


def _longer(summary: Summary, again: str) -> Iterator[str]:
    """Yield the command with twice the steps and another folder, unless the steps vary over rows.

    If the command line had reduced the steps, the command has twice the steps of the grid.
    """
    steps = {row.run.train.steps for row in summary.rows}
    if len(steps) == 1 and not any(path in ("train", "train.steps") for path in summary.plan.axes):
        rest = re.sub(r" train\.steps=\S+", "", again)
        out = f"{rest}-longer" if " --out " in rest else f"{rest} --out runs/{summary.plan.name}-longer"
        own = (summary.plan.given and summary.plan.given.steps) or 0
        yield f"train longer: {out}{_same_seeds(summary)} train.steps={2 * max(own, steps.pop())}"


def _rates(summary: Summary, again: str) -> Iterator[str]:
    """Yield lines that choose the learning rate among candidates, unless it varies or the grid has a `select`."""
    if LR not in summary.plan.axes and not summary.plan.select:
        rates = {row.run.train.lr for row in summary.rows}
        values = sorted({float(f"{rate * factor:.2g}") for rate in rates for factor in (0.3, 1, 3)})
        over = f"{{{LR}: [{', '.join(map(_number, values))}]}}"
        seeds = min(2, len(summary.plan.seeds))
        yield f"choose the learning rate, in the grid: select: {{over: {over}, seeds: {seeds}}}"
        yield f"and then: {again}{_same_seeds(summary)} --extend"


def _same_seeds(summary: Summary) -> str:
    """Return the option with the seeds of the table; empty for a sequential grid, which plans its seeds itself."""
    return "" if summary.looks else f" --seeds {_seeds(summary.plan.seeds)}"


def wants_seeds(summary: Summary) -> bool:
    """Return whether more seeds may help, because some compared row has no significant result."""
    return bool(summary.rows) and more_seeds_may_tell(summary, [row for row in summary.rows if _not_settled(row)])


def _not_settled(row: Row) -> bool:
    gap = row.difference
    return bool(
        gap
        and not row.unmended
        and gap.mean is not None
        and (gap.kind == "few" or (row.p is not None and row.p >= ALPHA))
    )


def wider(summary: Summary) -> str:
    """Return the grid's `select` line with a further value beyond each end of a range that a row chose."""
    select = summary.plan.select
    assert select is not None
    ranges = [f"{path}: [{', '.join(map(_number, _widened(summary, path)))}]" for path in select.over]
    return f"select: {{over: {{{', '.join(ranges)}}}, by: {select.by}, seeds: {select.seeds}}}"


def _widened(summary: Summary, path: str) -> list[Any]:
    """Return the candidates of a key in ascending order, with a further value beyond each end that a row chose.

    If no row chose an end, the candidates are in the grid's order.
    """
    every = [own.values[path] for row in summary.rows for own in row.cell.candidates if path in own.values]
    values: list[Any] = list(dict.fromkeys(every))
    chosen = {row.picked[path] for row in summary.rows if path in row.edges}
    if not chosen:
        return values
    values.sort()
    below = [_beyond(values[1], values[0])] if values[0] in chosen else []
    above = [_beyond(values[-2], values[-1])] if values[-1] in chosen else []
    return [value for value in (*below, *values, *above) if value is not None]


def _beyond(inner: float, end: float) -> float | int | None:
    """Return the next value of a range after `inner` and `end`: the ratio is continued, or the difference.

    The ratio is used if both are positive. `None` if rounding to an integer gives 0 or `end`, and if a difference would
    be continued downwards.
    """
    if inner > 0 and end > 0:
        value = end * end / inner
        return (
            float(f"{value:.2g}")
            if isinstance(end, float)
            else (round(value) if round(value) not in (0, end) else None)
        )
    return 2 * end - inner if end > inner else None


def _seeds(seeds: Sequence[int]) -> str:
    """Return the seeds in the syntax of the command line."""
    return f"{seeds[0]}..{seeds[0]}" if len(seeds) == 1 else seeds_text(seeds).replace(" ", "")


def _number(value: Any) -> str:
    """Return a number in a form that YAML 1.2 reads back unchanged."""
    return f"{value:.10g}" if isinstance(value, float) else shown(value)


def more_seeds(seeds: Sequence[int]) -> str:
    """Return a range with all present `seeds` and in total at least twice as many and at least five."""
    first = min(seeds)
    return seeds_text(range(first, max(*seeds, first + max(2 * len(seeds), 5) - 1) + 1))

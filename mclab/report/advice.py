"""What to do next, as a command or a line of the grid that can be pasted."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mclab.config.keys import shown
from mclab.report.names import seeds_text
from mclab.report.row import Row
from mclab.report.stats import ALPHA
from mclab.report.summary import LR, Summary

#: What the seeds to ask for follow.
MORE_SEEDS = "More seeds may tell: --seeds "


def unsettled(summary: Summary, unclear: Sequence[Row]) -> bool:
    """True where more seeds may tell rows from the first one: not at the ceiling, not where all diverged, and not where
    both are at what can be had without recall."""
    first = summary.rows[0]
    return not first.lost and any(not (row.ceiling or row.lost or (row.guessing and first.guessing)) for row in unclear)


def commands(summary: Summary, again: str) -> list[str]:
    """What to do next, to be pasted: longer training or a choice of the learning rate where a row has not begun to
    recall, more seeds where rows cannot be told apart, a wider range where its end won.

    `again` is the command that made the table, without its seeds.
    """
    if not summary.rows:
        return []
    found = list(_learn(summary, again)) if any(row.guessing for row in summary.rows) else []
    if wants_seeds(summary):
        found.append(f"add seeds: {again} --seeds {more_seeds(summary.plan.seeds)}")
    if any(row.edges for row in summary.rows):
        found.append(f"widen the range, in the grid: {wider(summary)}")
        found.append(f"and then: {again} --seeds {_seeds(summary.plan.seeds)} --extend")
    return found


def _learn(summary: Summary, again: str) -> Iterator[str]:
    """Twice the steps, into a folder of its own, where no row varies them; candidates for the learning rate, where
    nothing chooses or varies it."""
    seeds, steps = summary.plan.seeds, {row.run.train.steps for row in summary.rows}
    if len(steps) == 1 and not any(path in ("train", "train.steps") for path in summary.plan.axes):
        rest = re.sub(r" train\.steps=\S+", "", again)
        out = f"{rest}-longer" if " --out " in rest else f"{rest} --out runs/{summary.plan.name}-longer"
        yield f"train longer: {out} --seeds {_seeds(seeds)} train.steps={2 * steps.pop()}"
    if LR not in summary.plan.axes and not summary.plan.select:
        rates = {row.run.train.lr for row in summary.rows}
        values = sorted({float(f"{rate * factor:.2g}") for rate in rates for factor in (0.3, 1, 3)})
        over = f"{{{LR}: [{', '.join(map(_number, values))}]}}"
        yield f"choose the learning rate, in the grid: select: {{over: {over}, seeds: {min(2, len(seeds))}}}"
        yield f"and then: {again} --seeds {_seeds(seeds)} --extend"


def wants_seeds(summary: Summary) -> bool:
    """True where a row can be compared with the first one and no test settles it."""
    return bool(summary.rows) and unsettled(summary, [row for row in summary.rows if _open(row)])


def _open(row: Row) -> bool:
    gap = row.difference
    return bool(gap and gap.mean is not None and (gap.kind == "few" or (row.p is not None and row.p >= ALPHA)))


def wider(summary: Summary) -> str:
    """The grid's `select` line with one more value beyond each end that a row chose, a step of the range further."""
    select = summary.plan.select
    assert select is not None
    ranges = [f"{path}: [{', '.join(map(_number, _widened(summary, path)))}]" for path in select.over]
    return f"select: {{over: {{{', '.join(ranges)}}}, by: {select.by}, seeds: {select.seeds}}}"


def _widened(summary: Summary, path: str) -> list[Any]:
    """The candidates of a key, in order, and what lies beyond the ends that were chosen."""
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
    """As far from the end as the end is from its neighbour, by ratio; `None` where a key above 0 has nothing there."""
    if inner > 0 and end > 0:
        value = end * end / inner
        return (
            float(f"{value:.2g}")
            if isinstance(end, float)
            else (round(value) if round(value) not in (0, end) else None)
        )
    return 2 * end - inner if end > inner else None


def _seeds(seeds: Sequence[int]) -> str:
    """As the command line reads them."""
    return f"{seeds[0]}..{seeds[0]}" if len(seeds) == 1 else seeds_text(seeds).replace(" ", "")


def _number(value: Any) -> str:
    """As YAML 1.2 reads a number back."""
    return f"{value:.10g}" if isinstance(value, float) else shown(value)


def more_seeds(seeds: Sequence[int]) -> str:
    """A range that keeps the seeds there are and holds at least twice as many, at least five."""
    first = min(seeds)
    return seeds_text(range(first, max(*seeds, first + max(2 * len(seeds), 5) - 1) + 1))

"""How much work a plan is, in runs and tokens."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mclab.config.run import RunConfig
from mclab.config.variants import turns
from mclab.plan.plan import Cell, Plan


@dataclass(frozen=True)
class Size:
    """`listed` cells as written, `cells` distinct ones. `first` runs let every cell choose; `runs` are all that will be
    needed once they have chosen, at most where seeds are added until every row is told, and `least` those where all
    rows are at the first look. `candidates` counts the settings that cells choose from, one per cell without select.

    `tokens` are the training tokens of `runs`; where candidates differ in tokens, the dearest is taken to win.
    """

    listed: int
    cells: int
    candidates: int
    first: int
    runs: int
    tokens: int
    least: int


def size(plan: Plan) -> Size:
    """Count a plan. A run that two cells share is one run."""
    first = set(plan.first_runs())
    later = {run for cell in plan.cells for run in _later(plan, cell, len(plan.seeds))} - first
    looked = plan.until.looks[0] if plan.until else len(plan.seeds)
    least = first | {run for cell in plan.cells for run in _later(plan, cell, looked)}
    return Size(
        listed=plan.listed,
        cells=len(plan.cells),
        candidates=sum(len(cell.candidates) for cell in plan.cells),
        first=len(first),
        runs=len(first) + len(later),
        tokens=_tokens(first) + _tokens(later),
        least=len(least),
    )


def _later(plan: Plan, cell: Cell, seeds: int) -> Iterable[RunConfig]:
    """The winner's other seeds of the first so many, if the dearest candidate wins."""
    dearest = max(cell.candidates, key=lambda each: tokens(next(iter(each.runs.values()))))
    return (dearest.runs[seed] for seed in plan.seeds[len(plan.first_seeds) : seeds])


def tokens(run: RunConfig) -> int:
    """Tokens that a run trains on, each step on its part of the mix."""
    train = run.train
    if not train.task:
        return train.steps * train.batch * run.task.length
    mix = run.mix
    weights = tuple(part.weight for part in mix)
    cycles, rest = divmod(train.steps, sum(weights))
    order = Counter(turns(weights, rest))
    counts = (cycles * weight + order[place] for place, weight in enumerate(weights))
    return train.batch * sum(count * part.task.length for count, part in zip(counts, mix, strict=True))


def _tokens(runs: Iterable[RunConfig]) -> int:
    return sum(map(tokens, runs))

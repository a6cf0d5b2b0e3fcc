"""A grid, resolved: cells, each with the candidates it chooses from, each with a run per seed; and how much that is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mclab.config.ids import run_id
from mclab.config.run import RunConfig
from mclab.config.strict import Leaf
from mclab.config.variants import turns
from mclab.config.versions import versions
from mclab.plan.paper import Paper
from mclab.plan.seeds import Until

#: The axis of the changes' names where a grid crosses them with `grid` or `zip`. Not a key of a run.
CHANGE = "change"


@dataclass(frozen=True)
class Select:
    """How a cell chooses among its candidates: by the mean over its first `seeds` seeds on valid."""

    over: tuple[str, ...]
    by: str
    seeds: int


@dataclass(frozen=True)
class Candidate:
    """One setting of the selected keys (empty without `select`), with the run of every seed.

    `ids` are the runs' ids where they were read from a stored plan: those that its records were stored under.
    """

    values: dict[str, Leaf]
    runs: dict[int, RunConfig]
    ids: dict[int, str] = field(default_factory=dict, compare=False)

    def run_ids(self) -> dict[int, str]:
        """The run's id by seed."""
        return self.ids or self._hashed

    @cached_property
    def _hashed(self) -> dict[int, str]:
        return {seed: run_id(run) for seed, run in self.runs.items()}


@dataclass(frozen=True)
class Cell:
    """One row of the table.

    `values` are the varied keys as the grid's author wrote them, in the plan's order; keys that this row does not set,
    or that change nothing in it, are absent.
    """

    name: str
    values: dict[str, Any]
    candidates: tuple[Candidate, ...]


def row_name(cell: Cell) -> str:
    """The name of the row that a cell is in where other axes are columns: its change, else its own name."""
    return str(cell.values.get(CHANGE, cell.name))


@dataclass(frozen=True)
class Given:
    """What a command line gave to make a plan, as it was typed; `grid` is the file, `None` for a run without one.

    `steps` are the grid's own steps of training, without the overrides; 0 in a plan that was stored before they were.
    `only` are the values that the cells were narrowed to (`mclab.plan.only`).
    """

    grid: str | None = None
    overrides: tuple[str, ...] = ()
    seeds: str | None = None
    smoke: bool = False
    quick: bool = False
    steps: int = 0
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A grid, resolved. `axes` are the varied keys' dotted paths. The first cell is the baseline; where changes are
    crossed with other axes (`CHANGE` is among them), a cell's is the first change with the same other values.

    `named` says that the rows have names of their own (a grid of changes); `listed` counts the cells before equal ones
    were merged. `versions` are those of the parts of its runs that were not at their first when the plan was stored;
    `None` in a plan that was just made. `given` is `None` in a plan that was stored before it was kept, and so is
    `written`: the keys that all cells share, as the grid's base and the command line have them. `paper` is what a
    publication prints of its rows; it changes no run.

    With `until` the seeds are those up to the last look, and a row asks for no more of them once it is settled.
    `looked` are the numbers of seeds of earlier plans of the same folder whose results were all there when this one
    added seeds or rows: a look that this plan's p values are not corrected for.
    """

    name: str
    question: str | None
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    select: Select | None
    seeds: tuple[int, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    named: bool = False
    listed: int = 0
    versions: Mapping[str, int] | None = field(default=None, compare=False)
    given: Given | None = field(default=None, compare=False)
    written: Mapping[str, Any] | None = field(default=None, compare=False)
    until: Until | None = None
    looked: tuple[int, ...] = field(default=(), compare=False)
    paper: Paper | None = None

    @property
    def first_seeds(self) -> tuple[int, ...]:
        """The seeds on which every candidate is run: those of the choice, else of the first look, else all."""
        if self.select:
            return self.seeds[: self.select.seeds]
        return self.seeds[: self.until.looks[0]] if self.until else self.seeds

    @property
    def made_with(self) -> Mapping[str, int]:
        """The versions of the parts of its runs, of those that are not at their first."""
        if self.versions is not None:
            return self.versions
        found: dict[str, int] = {}
        for cell in self.cells:
            for candidate in cell.candidates:
                found |= versions(next(iter(candidate.runs.values())))
        return found

    def first_runs(self) -> Iterator[RunConfig]:
        """What must be known before a cell can choose: every candidate on the first seeds."""
        for cell in self.cells:
            for candidate in cell.candidates:
                yield from (candidate.runs[seed] for seed in self.first_seeds)


@dataclass(frozen=True)
class Workload:
    """`listed` cells as written, `cells` distinct ones. `first` runs let every cell choose, `runs` are all that will be
    needed then. With seeds until told `runs` is the most, and `least` what is needed if the first look decides all
    rows. `candidates` counts the settings that cells choose from, one per cell without select.

    `tokens` are the training tokens of `runs`; where candidates differ in tokens, the one with the most counts.
    """

    listed: int
    cells: int
    candidates: int
    first: int
    runs: int
    tokens: int
    least: int


def workload(plan: Plan) -> Workload:
    """Count a plan. A run that two cells share is one run."""
    first = set(plan.first_runs())
    later = {run for cell in plan.cells for run in _later(plan, cell, len(plan.seeds))} - first
    looked = plan.until.looks[0] if plan.until else len(plan.seeds)
    least = first | {run for cell in plan.cells for run in _later(plan, cell, looked)}
    return Workload(
        listed=plan.listed,
        cells=len(plan.cells),
        candidates=sum(len(cell.candidates) for cell in plan.cells),
        first=len(first),
        runs=len(first) + len(later),
        tokens=sum(map(tokens, first)) + sum(map(tokens, later)),
        least=len(least),
    )


def _later(plan: Plan, cell: Cell, seeds: int) -> Iterable[RunConfig]:
    """The winner's other seeds among the first `seeds`, if the candidate with the most tokens wins."""
    largest = max(cell.candidates, key=lambda each: tokens(next(iter(each.runs.values()))))
    return (largest.runs[seed] for seed in plan.seeds[len(plan.first_seeds) : seeds])


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

"""A resolved grid: its cells, their candidates, the run of each candidate and seed, and how much work it is."""

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

#: The axis for the names of changes, if a grid crosses changes with `grid` or `zip`. It is no key of a run.
CHANGE = "change"


@dataclass(frozen=True)
class Select:
    """How a cell chooses among its candidates: by the mean of `by` (on valid) over its first `seeds` seeds."""

    over: tuple[str, ...]
    by: str
    seeds: int


@dataclass(frozen=True)
class Candidate:
    """One combination of values for the keys of `select` (empty without it), with the run of every seed.

    `ids` is given if the plan was read from a file: the run ids by seed under which its records were stored.
    """

    values: dict[str, Leaf]
    runs: dict[int, RunConfig]
    ids: dict[int, str] = field(default_factory=dict, compare=False)

    def run_ids(self) -> dict[int, str]:
        """Return {seed: run id}."""
        return self.ids or self._hashed

    @cached_property
    def _hashed(self) -> dict[int, str]:
        return {seed: run_id(run) for seed, run in self.runs.items()}


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid, without the seed; a row of the table shows it.

    `values` are the varied keys as the author of the grid wrote them, in the plan's order. Keys that this cell does not
    set, or that have no effect in it, are absent.
    """

    name: str
    values: dict[str, Any]
    candidates: tuple[Candidate, ...]


def row_name(cell: Cell) -> str:
    """Return the name of a cell's row, given columns for the other axes: its change, or else its own name."""
    return str(cell.values.get(CHANGE, cell.name))


@dataclass(frozen=True)
class Given:
    """What the command line gave to make a plan, as typed. `grid` is the file, `None` for a run without one.

    `steps` is the number of training steps in the grid, without overrides; 0 in a stored plan that is older than this
    field. `only` are the values to which the cells were narrowed (`mclab.plan.only`).
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
    """A resolved grid. `axes` are the dotted paths of the varied keys. The first cell is the baseline.

    If changes are crossed with other axes (`CHANGE` is among `axes`), each cell has its own baseline: the first change
    with the same values on the other axes.

    `named` says that the cells have names of their own (a grid of changes); `listed` is the number of cells before
    equal ones were merged. `versions` holds the versions of those parts of the runs that were not at their first
    version when the plan was stored; it is `None` in a plan that was just made. `written` holds the keys that all cells
    share, as the base and the command line give them. `given` and `written` are `None` in a stored plan that is older
    than these fields. `paper` is what a publication prints about the rows; it changes no run.

    With `until`, `seeds` are those up to the last look, and a row needs no more seeds once it is decided. `looked` are
    the numbers of seeds at which earlier plans of the same folder had all their results when seeds or rows were added;
    the p values of this plan are not corrected for these looks.
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
        """The seeds on which every candidate runs: those for the choice, else those of the first look, else all."""
        if self.select:
            return self.seeds[: self.select.seeds]
        return self.seeds[: self.until.looks[0]] if self.until else self.seeds

    @property
    def made_with(self) -> Mapping[str, int]:
        """The versions of those parts of the plan's runs that are not at their first version."""
        if self.versions is not None:
            return self.versions
        found: dict[str, int] = {}
        for cell in self.cells:
            for candidate in cell.candidates:
                found |= versions(next(iter(candidate.runs.values())))
        return found

    def first_runs(self) -> Iterator[RunConfig]:
        """Yield the runs that cells need before they can choose: every candidate on the first seeds."""
        for cell in self.cells:
            for candidate in cell.candidates:
                yield from (candidate.runs[seed] for seed in self.first_seeds)


@dataclass(frozen=True)
class Workload:
    """How much work a plan is: `listed` cells as written, of which `cells` are distinct, with `candidates` in total.

    After the `first` runs every cell can choose; `runs` counts these and the runs that are needed after that. In a
    sequential plan `runs` is the largest possible number, and `least` the number if the first look decides all rows.
    Without `select`, every cell has one candidate.

    `tokens` are the training tokens of `runs`; if candidates differ in tokens, the one with the most counts.
    """

    listed: int
    cells: int
    candidates: int
    first: int
    runs: int
    tokens: int
    least: int


def workload(plan: Plan) -> Workload:
    """Return how much work a plan is. A run that two cells share counts once."""
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
    """Return the runs on the seeds after the first ones, up to `seeds`, of the candidate with the most tokens."""
    largest = max(cell.candidates, key=lambda each: tokens(next(iter(each.runs.values()))))
    return (largest.runs[seed] for seed in plan.seeds[len(plan.first_seeds) : seeds])


def tokens(run: RunConfig) -> int:
    """Return the number of tokens that a run trains on. With a mix, each step trains on one task of the mix."""
    train = run.train
    if not train.task:
        return train.steps * train.batch * run.task.length
    mix = run.mix
    weights = tuple(part.weight for part in mix)
    cycles, rest = divmod(train.steps, sum(weights))
    order = Counter(turns(weights, rest))
    counts = (cycles * weight + order[place] for place, weight in enumerate(weights))
    return train.batch * sum(count * part.task.length for count, part in zip(counts, mix, strict=True))

"""Find the runs that a plan still needs: first all that are known, then more as results let cells continue."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mclab.config.ids import run_id
from mclab.config.outcome import FINAL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.plan.plan import Plan
from mclab.plan.select import Lookup, Wanted, choose, runs_needed


class PendingRuns:
    """Gives out each run that is needed, once.

    A cell that chooses among candidates (`select`) continues with the other seeds of the chosen one as soon as the
    results of its candidates are known. With `retry_failed` the `oom` and `failed` records of earlier commands count as
    missing. For a sequential plan, `wanted` says how many seeds each cell needs; it is called again when all runs that
    were given out have ended.
    """

    def __init__(self, plan: Plan, lookup: Lookup, *, retry_failed: bool, wanted: Wanted | None = None) -> None:
        self._plan, self._lookup, self._retry_failed = plan, lookup, retry_failed
        self._wanted = wanted or (lambda lookup: [len(plan.seeds)] * len(plan.cells))
        self._given: set[str] = set()
        self._over: set[str] = set()
        self._cells: dict[str, list[int]] = defaultdict(list)
        for number, cell in enumerate(plan.cells):
            for name in {name for candidate in cell.candidates for name in candidate.run_ids().values()}:
                self._cells[name].append(number)
        self._seeds = self._wanted(self.known)
        self._open = {n for n, cell in enumerate(plan.cells) if plan.select and not choose(plan, cell, self.known)}

    def known(self, name: str) -> StoredRun | None:
        """Return the record of the run `name` if it counts in this command, else `None`."""
        record = self._lookup(name)
        if record and self._retry_failed and name not in self._over and record.status not in FINAL:
            return None
        return record

    def all(self) -> list[RunConfig]:
        """Return the runs that are needed now, in the plan's order, except those that are stored or were given out."""
        return list(self._missing(range(len(self._plan.cells))))

    def done_with(self, run: RunConfig) -> list[RunConfig]:
        """Return the further runs that are needed after the outcome of `run` was stored.

        They are the other seeds of cells that can now choose, or in a sequential plan the next seeds.
        """
        name = run_id(run)
        self._over.add(name)
        new: list[RunConfig] = []
        for number in self._open.intersection(self._cells[name]):
            if choose(self._plan, self._plan.cells[number], self.known):
                self._open.discard(number)
                new += self._missing([number])
        if not new and self._given <= self._over:
            self._seeds = self._wanted(self.known)
            new += self.all()
        return new

    def _missing(self, numbers: Sequence[int]) -> Iterator[RunConfig]:
        cells = tuple(self._plan.cells[number] for number in numbers)
        seeds = [self._seeds[number] for number in numbers]
        for run in runs_needed(replace(self._plan, cells=cells), self.known, seeds):
            name = run_id(run)
            if name not in self._given and self.known(name) is None:
                self._given.add(name)
                yield run

    @property
    def expected(self) -> int:
        """Return the largest number of runs that will be needed in addition to those that were given out."""
        return sum(self.later().values())

    def later(self) -> dict[int, int]:
        """Return {number of a cell: the most runs that will follow}, for cells that still choose or may get seeds."""
        plan = self._plan
        first, most = len(plan.first_seeds), len(plan.seeds)
        found = dict.fromkeys(self._open, most - first)
        if plan.until and self._given - self._over:
            going = max(self._seeds)  # the seeds of the current look, or of the last one
            rest = {n: most - seeds for n, seeds in enumerate(self._seeds) if seeds == going and n not in self._open}
            found |= rest
        return {number: found[number] for number in sorted(found) if found[number]}

    def candidates(self, number: int) -> list[RunConfig]:
        """Return one run of each candidate of the cell with this number. The cell will continue with one of them."""
        return [next(iter(each.runs.values())) for each in self._plan.cells[number].candidates]

    @property
    def given(self) -> int:
        """The number of runs that have been given out so far."""
        return len(self._given)

    def label(self, run: RunConfig) -> str:
        """Return a name of the run for messages: its cell, its seed, its id."""
        name = run_id(run)
        return f"{self._plan.cells[self._cells[name][0]].name}, seed {run.seed} (run {name})"

    def needed(self) -> list[RunConfig]:
        """Return all runs that the plan needs, given the stored results. Runs that are already stored are included."""
        return runs_needed(self._plan, self._lookup, self._wanted(self._lookup))

    def statuses(self) -> tuple[Counter[str], int]:
        """Return how many of the needed runs are stored, by status, and how many are not stored."""
        records = [self._lookup(run_id(run)) for run in self.needed()]
        stored = Counter[str](record.status for record in records if record)
        return stored, len(records) - stored.total()

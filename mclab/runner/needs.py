"""Which runs a plan still needs, first all of them and then as each result lets a cell go on."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from mclab.config.outcome import FINAL
from mclab.config.run import RunConfig, run_id
from mclab.config.stored import StoredRun
from mclab.plan.plan import Plan
from mclab.plan.select import Lookup, choose, runs_needed


class Needs:
    """Gives every run once. A cell goes on to its winner's other seeds when its own candidates are known, no later.

    With `retry_failed` the `oom` and `failed` records of earlier commands count as missing.
    """

    def __init__(self, plan: Plan, lookup: Lookup, *, retry_failed: bool) -> None:
        self._plan, self._lookup, self._retry_failed = plan, lookup, retry_failed
        self._given: set[str] = set()
        self._over: set[str] = set()
        self._cells: dict[str, list[int]] = defaultdict(list)
        for number, cell in enumerate(plan.cells):
            for name in {name for candidate in cell.candidates for name in candidate.run_ids().values()}:
                self._cells[name].append(number)
        self._open = {n for n, cell in enumerate(plan.cells) if plan.select and not choose(plan, cell, self.known)}

    def known(self, name: str) -> StoredRun | None:
        """The record that counts in this command."""
        record = self._lookup(name)
        if record and self._retry_failed and name not in self._over and record.status not in FINAL:
            return None
        return record

    def all(self) -> list[RunConfig]:
        """What is needed now and not stored, in the plan's order."""
        return list(self._missing(self._plan))

    def done_with(self, run: RunConfig) -> list[RunConfig]:
        """What is needed now that this run's outcome is stored: the other seeds of the cells that chose on it."""
        name = run_id(run)
        self._over.add(name)
        new: list[RunConfig] = []
        for number in self._open.intersection(self._cells[name]):
            cell = self._plan.cells[number]
            if choose(self._plan, cell, self.known):
                self._open.discard(number)
                new += self._missing(replace(self._plan, cells=(cell,)))
        return new

    def _missing(self, plan: Plan) -> Iterator[RunConfig]:
        for run in runs_needed(plan, self.known):
            name = run_id(run)
            if name not in self._given and self.known(name) is None:
                self._given.add(name)
                yield run

    @property
    def expected(self) -> int:
        """At most so many further runs will be needed by cells that have not chosen yet."""
        return sum(self.later().values())

    def later(self) -> dict[int, int]:
        """How many runs will follow at most, by the number of each cell that has not chosen yet."""
        select = self._plan.select
        return dict.fromkeys(sorted(self._open), len(self._plan.seeds) - select.seeds) if select else {}

    def candidates(self, number: int) -> list[RunConfig]:
        """A run of each candidate of the cell with this number."""
        return [next(iter(each.runs.values())) for each in self._plan.cells[number].candidates]

    @property
    def given(self) -> int:
        """How many runs have been given so far."""
        return len(self._given)

    def label(self, run: RunConfig) -> str:
        """The run as a person knows it: its cell, its seed, its id."""
        name = run_id(run)
        return f"{self._plan.cells[self._cells[name][0]].name}, seed {run.seed} (run {name})"

    def statuses(self) -> tuple[Counter[str], int]:
        """How many of the runs that the plan asks for are stored, by status, and how many are not."""
        records = [self._lookup(run_id(run)) for run in runs_needed(self._plan, self._lookup)]
        stored = Counter[str](record.status for record in records if record)
        return stored, len(records) - stored.total()

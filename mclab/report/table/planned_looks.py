"""Compute the progress of a sequential grid: all its looks, from the first one on, with the stored records.

The result depends only on the plan and the records, so an interrupted command continues exactly where it stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.sequential import Gap, LookResult, Looks, gap_of
from mclab.report.stats import Difference
from mclab.report.table.accuracy import scores
from mclab.report.table.baseline import apart, baselines_of, difference_of, is_high, unmended
from mclab.report.table.row import Row, row_of


@dataclass(frozen=True)
class LooksSoFar:
    """The progress of a sequential grid.

    `wanted` and `shown` have a number for each cell, in the plan's order: the cell now needs the first `wanted` seeds
    of the plan, and its row is shown over the first `shown` seeds, those of its last look. `results` holds the result
    of each row except baselines, by index. `taken` is the number of seeds at the last look, `None` before the first
    look. `under_way` is the number of seeds at the next look, `None` if no row is open. `compared` is the number of
    rows that Holm's adjustment counts.
    """

    wanted: tuple[int, ...]
    shown: tuple[int, ...]
    results: dict[int, LookResult]
    taken: int | None
    under_way: int | None
    compared: int


def looks_so_far(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> LooksSoFar:
    """Evaluate the looks of a sequential plan, as far as the stored records allow."""
    return _Walk(plan, lookup, curve).so_far()


class _Walk:
    def __init__(self, plan: Plan, lookup: Lookup, curve: Curve | None) -> None:
        assert plan.until is not None
        self.plan, self.lookup, self.curve, self.rule = plan, lookup, curve, plan.until
        first = [self._row(place, self.rule.looks[0]) for place in range(len(plan.cells))]
        self.base = baselines_of(first)
        self.results: dict[int, LookResult] = {}
        for place, base in enumerate(self.base):
            if base is None:
                self.results[place] = LookResult("not compared", kind="alone")
            elif base != place and set(first[place].own) != set(first[base].own):
                self.results[place] = LookResult("not compared", kind="slices")
            elif base != place:
                self.results[place] = LookResult("waiting")
        self.looks = Looks(self.rule, [place for place, result in self.results.items() if result.state == "waiting"])
        self.seen = [0] * len(plan.cells)
        self.taken: int | None = None
        self.under_way: int | None = None
        self.active: set[int] = set(range(len(plan.cells)))
        for n in self.rule.looks:
            if not self.active:
                return
            if not self._look(n):
                self.under_way = n
                return
            self.taken = n
            self.active = {*self.looks.open, *(base for row in self.looks.open if (base := self.base[row]) is not None)}

    def so_far(self) -> LooksSoFar:
        now = self.under_way
        wanted = [now if now and place in self.active else seen for place, seen in enumerate(self.seen)]
        shown = [seen or want for seen, want in zip(self.seen, wanted, strict=True)]
        count = len(self.looks.rows)
        return LooksSoFar(tuple(wanted), tuple(shown), self.results, self.taken, now, count)

    def _row(self, place: int, n: int) -> Row:
        return row_of(self.plan, self.plan.cells[place], self.lookup, self.curve, n)

    def _look(self, n: int) -> bool:
        """Take the look at `n` seeds.

        Return `False` without a result if runs are not stored yet, or if a run of a baseline failed.
        """
        rows = {place: self._row(place, n) for place in self.active}
        baselines = {self.base[place] for place in self.looks.open}
        if any(self._waits(row) or (place in baselines and not _whole(row, n)) for place, row in rows.items()):
            return False
        for place in self.active:
            self.seen[place] = n
        gaps: dict[int, Sequence[float]] = {}
        held = set[int]()
        for place in list(self.looks.open):
            row, base = rows[place], rows[self.base[place] or 0]
            if result := self._without_verdict(row, base, n):
                self.results[place] = result
                self.looks.drop(place)
                continue
            gaps[place] = _gaps(row, base)
            if n == self.rule.looks[0] and (row.not_learned or base.not_learned):
                held.add(place)  # a seed did not learn: five differences are then too far from normal for the test
        self.looks.take(gaps, held)
        for place in gaps:
            found = self.looks.settled[place]
            self.results[place] = LookResult(found.state, n, found.gap, found.p, found.share)
        return True

    def _waits(self, row: Row) -> bool:
        """Return whether a run of the row is not stored yet.

        If a cell could choose no candidate because runs failed, all its runs are stored, so the row does not wait.
        """
        if row.candidate is not None:
            return bool(row.missing)
        ids = [candidate.run_ids() for candidate in row.cell.candidates]
        return any(self.lookup(own[seed]) is None for own in ids for seed in self.plan.first_seeds)

    def _without_verdict(self, row: Row, base: Row, n: int) -> LookResult | None:
        """Return the result of a row that gets neither a verdict nor more seeds; `None` for a row to be tested."""
        if not _whole(row, n):
            return LookResult("failed", n, why="runs failed")
        if apart(row, base) == "versions":
            return LookResult("not compared", n, kind="versions")
        kind = difference_of(row, base).kind
        if kind == "lost":
            return LookResult("unmended", n, why="all runs diverged", kind="lost")
        if kind == "identical":
            return LookResult("identical", n, kind="identical")
        gap = self._gap(row, base, n)
        if row.lost:
            return LookResult("unmended", n, gap, why="all runs diverged")
        if base.lost:
            return LookResult("unmended", n, gap, why="the baseline: all runs diverged")
        why = unmended(row, base)
        return LookResult("unmended", n, gap, why=why) if why else None

    def _gap(self, row: Row, base: Row, n: int) -> Gap:
        return gap_of(_gaps(row, base), self.rule.share(n), self.rule.step)


def _whole(row: Row, n: int) -> bool:
    """Return whether all `n` seeds have a score. A diverged run has the score 0, a failed run has none."""
    return len(scores(row.records)) == n


def _gaps(row: Row, base: Row) -> list[float]:
    ours, theirs = scores(row.records), scores(base.records)
    return [ours[seed] - theirs[seed] for seed in ours]


def compared_at_looks(rows: Sequence[Row], progress: LooksSoFar) -> list[Row]:
    """Return the rows with their differences and results, each at the last look that included the row."""
    compared = list(rows)
    for place, base in enumerate(baselines_of(rows)):
        if place == base:
            continue
        row, result = rows[place], progress.results[place]
        high = base is not None and result.gap is not None and is_high(row) and is_high(rows[base])
        why = result.why if result.state == "unmended" else ""
        found = replace(row, difference=_at_look(result), p=result.p, ceiling=high)
        compared[place] = replace(found, look_result=result, unmended=why)
    return compared


def _at_look(result: LookResult) -> Difference:
    if result.kind is not None or result.gap is None:
        return Difference(result.n, result.kind or "waiting", mean=0.0 if result.kind == "identical" else None)
    gap = result.gap
    return Difference(gap.n, "tested", gap.mean, gap.std, gap.lo, gap.hi, gap.p)

"""Which candidate a cell reports, and which runs a plan still asks for."""

from collections.abc import Callable, Iterator, Sequence
from math import fsum, inf, isfinite
from typing import Any

from mclab.config.outcome import ALL, FINAL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.plan.plan import Candidate, Cell, Plan

#: A stored run by its id, or `None` where it is not stored.
Lookup = Callable[[str], StoredRun | None]

#: The looks of a run's curve, by the run's id.
Curve = Callable[[str], list[dict[str, Any]]]
#: On how many of the plan's first seeds each cell is wanted, by what is stored; of a plan whose seeds are not fixed.
Wanted = Callable[[Lookup], Sequence[int]]

#: A range needs as many values before its ends say anything: of two, each is an end.
LEAST_RANGE = 3


def choose(plan: Plan, cell: Cell, lookup: Lookup) -> Candidate | None:
    """The candidate with the best mean on valid over the first `select.seeds` seeds.

    Ties go to the other metric (lower loss, higher accuracy), then to the smaller value (words: the first listed).
    A diverged run, and a pruned one, counts as accuracy 0 and infinite loss. A cell with one candidate has chosen.
    `None` while any record that the choice needs is missing or not final. `oom` and `failed` are not: a cell in which a
    candidate failed chooses nothing until that was run again, since a choice among the rest would be one among fewer
    candidates than the other cells had.
    """
    if plan.select is None or len(cell.candidates) == 1:
        return cell.candidates[0]
    first = plan.first_seeds
    merits: list[tuple[float, ...]] = []
    for place, candidate in enumerate(cell.candidates):
        ids = candidate.run_ids()
        records = [lookup(ids[seed]) for seed in first]
        known = [record for record in records if record is not None and record.status in FINAL]
        if len(known) < len(first):
            return None
        merits.append((*_merit(known, plan.select.by), *_size(candidate, place), place))
    return cell.candidates[merits.index(min(merits))]


def _merit(records: list[StoredRun], by: str) -> tuple[float, float]:
    """The smaller, the better: the metric to choose by, then the other one."""
    scores = [_score(record) for record in records]
    accuracy = -fsum(score[0] for score in scores) / len(scores)
    loss = fsum(score[1] for score in scores) / len(scores)
    return (loss, accuracy) if by == "valid.loss" else (accuracy, loss)


def _score(record: StoredRun) -> tuple[float, float]:
    if record.status != "done":
        return 0.0, inf
    score = record.valid[ALL]
    return float(score.accuracy), float(score.loss) if score.loss is not None and isfinite(score.loss) else inf


def _size(candidate: Candidate, place: int) -> Iterator[float]:
    """Numbers by size; words and lists have no size and stand as listed."""
    for value in candidate.values.values():
        number = _number(value)
        yield float(place) if number is None else number


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def edges(cell: Cell, candidate: Candidate) -> dict[str, bool]:
    """For each selected key, whether its value is an end of the cell's range: the best may lie outside.

    Only a range of three or more numbers has ends that say so.
    """
    found = {}
    for path, value in candidate.values.items():
        values = {_number(other.values[path]) for other in cell.candidates if path in other.values}
        numbers = sorted(number for number in values if number is not None)
        ordered = len(numbers) == len(values) >= LEAST_RANGE
        found[path] = ordered and _number(value) in (numbers[0], numbers[-1])
    return found


def runs_needed(plan: Plan, lookup: Lookup, wanted: Sequence[int] | None = None) -> list[RunConfig]:
    """Every run that the plan asks for, stored or not, each once: what choosing needs, then the winners' other seeds.

    While a cell cannot choose, its winner's other seeds are not among them: ask again when the first are stored.
    `wanted` says for each cell on how many seeds, by default on all.
    """
    needed = dict.fromkeys(plan.first_runs())
    first = len(plan.first_seeds)
    for place, cell in enumerate(plan.cells):
        seeds = plan.seeds[first : wanted[place] if wanted else None]
        if seeds and (winner := choose(plan, cell, lookup)):
            needed.update(dict.fromkeys(winner.runs[seed] for seed in seeds))
    return list(needed)

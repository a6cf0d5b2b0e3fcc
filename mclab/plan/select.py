"""A grid's `select`: the candidates of each cell, the metric, which candidate a cell chooses, which runs are needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import fsum, inf, isfinite, prod
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.keys import named_sections, plain_sections
from mclab.config.outcome import ALL, FINAL
from mclab.config.parse import quoted
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.plan.dotted import Setting
from mclab.plan.plan import Candidate, Cell, Plan, Select
from mclab.plan.rows import axes, refuse_many
from mclab.plan.source import Source

#: A function that returns a stored run by its id; `None` if it is not stored.
Lookup = Callable[[str], StoredRun | None]

#: A function that returns the evaluations of the run with a given id.
Curve = Callable[[str], list[dict[str, Any]]]
#: For a sequential plan: a function that returns how many seeds each cell needs, given the stored runs.
Wanted = Callable[[Lookup], Sequence[int]]

#: The smallest number of values for which the ends of a range mean something: of two values, each is an end.
LEAST_RANGE = 3


def choose(plan: Plan, cell: Cell, lookup: Lookup) -> Candidate | None:
    """Return the candidate with the best mean on valid over the first `select.seeds` seeds; `None` if not known yet.

    Ties go to the other metric (lower loss, higher accuracy), then to the smaller value (for words, the one listed
    first). A diverged or pruned run counts as accuracy 0 and infinite loss. A cell with one candidate chooses it.

    The choice is unknown while a record that it needs is missing or not final. `oom` and `failed` are not final: a cell
    with such a candidate chooses nothing until the candidate was run again. Otherwise it would choose among fewer
    candidates than the other cells.
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
    """Return the metric to choose by and the other one, with signs such that smaller is better."""
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
    """Yield a number for each value of the candidate, to break ties: the value, or `place` if it is no number."""
    for value in candidate.values.values():
        number = _number(value)
        yield float(place) if number is None else number


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def edges(cell: Cell, candidate: Candidate) -> dict[str, bool]:
    """Return for each key of `select` whether its value is an end of the cell's range, beyond which a better one may
    lie.

    Only a range of three or more numbers has ends in this sense.
    """
    found = {}
    for path, value in candidate.values.items():
        values = {_number(other.values[path]) for other in cell.candidates if path in other.values}
        numbers = sorted(number for number in values if number is not None)
        ordered = len(numbers) == len(values) >= LEAST_RANGE
        found[path] = ordered and _number(value) in (numbers[0], numbers[-1])
    return found


def runs_needed(plan: Plan, lookup: Lookup, wanted: Sequence[int] | None = None) -> list[RunConfig]:
    """Return every run that the plan needs, stored or not: those for the choices, then the chosen candidates' other
    seeds.

    Each run is listed once. If a cell cannot choose yet, the runs on its other seeds are missing: call this again when
    the first runs are stored. `wanted` gives the number of seeds for each cell, by default all.
    """
    needed = dict.fromkeys(plan.first_runs())
    first = len(plan.first_seeds)
    for place, cell in enumerate(plan.cells):
        seeds = plan.seeds[first : wanted[place] if wanted else None]
        if seeds and (winner := choose(plan, cell, lookup)):
            needed.update(dict.fromkeys(winner.runs[seed] for seed in seeds))
    return list(needed)


#: The metrics by which a cell may choose. Test is only for the table.
METRICS = ("valid.accuracy", "valid.loss")
_KEYS = ("over", "by", "seeds")
#: Sections whose keys a cell may not choose, since the easiest test would win.
_TEST = ("task", "eval")


def select_from(
    data: Any, seeds: Sequence[int], fewer: bool, source: Source, notes: list[str]
) -> tuple[Select | None, tuple[tuple[Setting, ...], ...]]:
    """Return the rule, and the settings of each candidate; without `select` there is one candidate without settings.

    `fewer` says that the command line gave fewer seeds than the grid has, so that `select.seeds` may be reduced too.
    Raises `ConfigError` for unknown keys and metrics, an empty `over`, a mapping as a value, a key that changes the
    test, and more seeds than there are.
    """
    if data is None:
        return None, ((),)
    if not isinstance(data, Mapping):
        raise source.error("select", f"select: must be a mapping with over, by and seeds, got {quoted(data)}")
    for key in data:
        if key not in _KEYS:
            hint = did_you_mean(str(key), _KEYS) or f"the keys of select are {', '.join(_KEYS)}"
            raise source.error(f"select.{key}", f"select.{key}: unknown key; {hint}")
    over = dict(axes(data.get("over") or {}, source, "select.over", notes))
    if not over:
        raise source.error(
            "select", "select.over: this block is empty; list values to choose from, e.g. {train.lr: [1e-3, 1e-2]}"
        )
    for path in over:
        if path.partition(".")[0] in _TEST:
            raise source.error(
                f"select.over.{path}",
                f"select.over: {path}: this key changes the test, so that every cell would choose the easiest test; "
                "vary it under grid",
            )
        if path in named_sections() or path in plain_sections():
            raise source.error(
                f"select.over.{path}",
                f"select.over: {path}: this is a mapping of keys; choose among the values of one key",
            )
    refuse_many("select.over", prod(map(len, over.values())), "candidates", source)
    rule = Select(tuple(over), _metric(data, source), _seeds(data, seeds, fewer, source, notes))
    return rule, tuple(product(*over.values()))


def _metric(data: Mapping[str, Any], source: Source) -> str:
    by = data.get("by", METRICS[0])
    if by in METRICS:
        return str(by)
    hint = did_you_mean(str(by), METRICS, "; ")
    if str(by).startswith("test"):
        hint = "; test is for the table, so choose on valid"
    raise source.error("select.by", f"select.by: must be {' or '.join(METRICS)}, got {quoted(by)}{hint}")


def _seeds(data: Mapping[str, Any], seeds: Sequence[int], fewer: bool, source: Source, notes: list[str]) -> int:
    count = data.get("seeds", min(2, len(seeds)))
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise source.error("select.seeds", f"select.seeds: must be a number of seeds, at least 1, got {quoted(count)}")
    if count > len(seeds) and fewer:
        notes.append(f"select.seeds: {count} is lowered to {len(seeds)}, which is the number of seeds")
        return len(seeds)
    if count > len(seeds):
        raise source.error(
            "select.seeds",
            f"select.seeds: the choice cannot be made on {count} seeds, because the grid has {len(seeds)}; take "
            f"{len(seeds)}",
        )
    return count


def refuse_double(over: Sequence[str], varied: Sequence[Setting], source: Source) -> None:
    """Raise `ConfigError` if a row sets a key of `select.over`, which every cell chooses."""
    for path in over:
        for item in varied:
            if path in item.touches:
                raise source.error(
                    f"select.over.{path}", f"select.over: {path}: this key is varied as well ({item.where}); keep one"
                )

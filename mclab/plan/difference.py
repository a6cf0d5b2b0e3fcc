"""Two plans for one folder: what the newer one adds and drops."""

from dataclasses import dataclass

from mclab.config.run import RunConfig
from mclab.config.strict import Leaf, leaves
from mclab.plan.plan import Candidate, Cell, Plan

_Config = frozenset[tuple[str, Leaf]]


@dataclass(frozen=True)
class Difference:
    """Names of cells that came and went, seeds that came and went, and whether cells choose by another rule."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    seeds_added: tuple[int, ...] = ()
    seeds_removed: tuple[int, ...] = ()
    select: bool = False

    @property
    def needs_extend(self) -> bool:
        """True for anything but more seeds."""
        return bool(self.added or self.removed or self.seeds_removed or self.select)

    def __bool__(self) -> bool:
        return self.needs_extend or bool(self.seeds_added)

    def __str__(self) -> str:
        """`+4 −2 cells, +3 seeds, another select`."""
        parts = [
            _count(len(self.added), len(self.removed), "cells"),
            _count(len(self.seeds_added), len(self.seeds_removed), "seeds"),
            "another select" if self.select else "",
        ]
        return ", ".join(part for part in parts if part)


def _count(more: int, fewer: int, noun: str) -> str:
    signs = [f"+{more}"] * bool(more) + [f"−{fewer}"] * bool(fewer)
    return f"{' '.join(signs)} {noun}" if signs else ""


def difference(old: Plan, new: Plan) -> Difference:
    """What `new` changes about `old`. Cells are the same when their runs are, whatever their names and order.

    Runs whose ids differ are different even where their configs agree: they belong to another version of the science.
    """
    over = {path for plan in (old, new) if plan.select for path in plan.select.over}
    shared = [seed for seed in new.seeds if seed in old.seeds]
    before, after = ({_ground(cell, over): cell for cell in plan.cells} for plan in (old, new))
    kept = {key for key in before if key in after and _same_science(before[key], after[key], shared)}
    return Difference(
        added=tuple(cell.name for key, cell in after.items() if key not in kept),
        removed=tuple(cell.name for key, cell in before.items() if key not in kept),
        seeds_added=tuple(seed for seed in new.seeds if seed not in old.seeds),
        seeds_removed=tuple(seed for seed in old.seeds if seed not in new.seeds),
        select=old.select != new.select or any(_all(before[key]) != _all(after[key]) for key in kept),
    )


def _ground(cell: Cell, over: set[str]) -> frozenset[_Config]:
    """The cell without its seeds and without what it chooses."""
    return frozenset(frozenset(item for item in config if item[0] not in over) for config in _all(cell))


def _all(cell: Cell) -> frozenset[_Config]:
    runs = (next(iter(candidate.runs.values())) for candidate in cell.candidates)
    return frozenset(frozenset(item for item in leaves(run) if item[0] != "seed") for run in runs)


def _same_science(old: Cell, new: Cell, seeds: list[int]) -> bool:
    """True unless the same config goes by another id."""
    ids = {run: name for each in old.candidates for run, name in _named(each, seeds)}
    return all(ids.get(run, name) == name for each in new.candidates for run, name in _named(each, seeds))


def _named(candidate: Candidate, seeds: list[int]) -> list[tuple[RunConfig, str]]:
    ids = candidate.run_ids()
    return [(candidate.runs[seed], ids[seed]) for seed in seeds]

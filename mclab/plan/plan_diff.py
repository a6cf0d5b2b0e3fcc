"""Compare two plans for one folder: what the newer plan adds, removes and changes."""

from collections.abc import Iterator
from dataclasses import dataclass

from mclab.config.ids import UNSCIENTIFIC, canonical, run_id
from mclab.config.keys import by_path, shown
from mclab.config.run import RunConfig
from mclab.config.strict import Leaf, leaves
from mclab.config.versions import differing, versions
from mclab.plan.dotted import ABSENT, Flat, differ, normalised, overlaid, parents_first, setting, value_at
from mclab.plan.plan import CHANGE, Candidate, Cell, Plan
from mclab.plan.select import Lookup, runs_needed

#: The most changed keys that are listed.
_MOST_KEYS = 3

_Config = frozenset[tuple[str, Leaf]]


@dataclass(frozen=True)
class PlanDiff:
    """The changes from an older plan to a newer one: cells (by name), seeds, and the rule for choosing (`select`).

    `until` says that both plans are sequential and differ in the looks, the shares of the error, the margin or the
    baseline. `planned` says that only one of the plans is sequential.

    `changed` are the keys, each with its old and new value, in which all added cells differ from the removed ones.
    `renewed` are the cells that are the same except for the versions of formulas, so that their runs have other ids.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    seeds_added: tuple[int, ...] = ()
    seeds_removed: tuple[int, ...] = ()
    select: bool = False
    until: bool = False
    planned: bool = False
    changed: tuple[tuple[str, Leaf, Leaf], ...] = ()
    renewed: tuple[str, ...] = ()

    @property
    def needs_extend(self) -> bool:
        """True unless the plans differ only in the number of seeds."""
        other_seeds = self.seeds_added and self.seeds_removed
        return bool(self.added or self.removed or (other_seeds and not self.planned) or self.select or self.until)

    def __bool__(self) -> bool:
        return self.needs_extend or self.planned or bool(self.seeds_added or self.seeds_removed)

    def __str__(self) -> str:
        """Return the differences as text, e.g. `+2 −2 cells (train.steps 50 → 40), +3 seeds, another select`."""
        parts = [
            f"{_count(len(self.added), len(self.removed), 'cells')}{self._keys()}",
            _count(len(self.seeds_added), len(self.seeds_removed), "seeds"),
            "another select" if self.select else "",
            "other looks, shares, margin or baseline" if self.until else "",
        ]
        return ", ".join(part for part in parts if part)

    def _keys(self) -> str:
        more = len(self.changed) - _MOST_KEYS
        named = [f"{path} {shown(old)} → {shown(new)}" for path, old, new in self.changed[:_MOST_KEYS]]
        named += [f"{more} more"] * (more > 0)
        return f" ({', '.join(named)})" if named else ""


def _count(more: int, fewer: int, noun: str) -> str:
    signs = [f"+{more}"] * bool(more) + [f"−{fewer}"] * bool(fewer)
    return f"{' '.join(signs)} {noun}" if signs else ""


def plan_diff(old: Plan, new: Plan) -> PlanDiff:
    """Return what `new` changes in `old`. Two cells are the same if their runs are, whatever their names and order."""
    over = _chosen(old, new)
    shared = [seed for seed in new.seeds if seed in old.seeds]
    before, after = ({_ground(cell, over): cell for cell in plan.cells} for plan in (old, new))
    kept = {key for key in before if key in after}
    gone, come = ([cell for key, cell in plan.items() if key not in kept] for plan in (before, after))
    return PlanDiff(
        added=tuple(cell.name for cell in come),
        removed=tuple(cell.name for cell in gone),
        seeds_added=tuple(seed for seed in new.seeds if seed not in old.seeds),
        seeds_removed=tuple(seed for seed in old.seeds if seed not in new.seeds),
        select=old.select != new.select or any(_all(before[key]) != _all(after[key]) for key in kept),
        until=bool(old.until and new.until) and (old.until != new.until or next(iter(before)) != next(iter(after))),
        planned=bool(old.until) != bool(new.until),
        changed=_changed(old, new, gone, come),
        renewed=tuple(
            after[key].name for key in after if key in kept and not _same_ids(before[key], after[key], shared)
        ),
    )


def looked(old: Plan | None, new: Plan, lookup: Lookup) -> tuple[int, ...]:
    """Return the numbers of seeds at which all results could be seen before `new` changed seeds, rows or looks of
    `old`.

    The p values of `new` are not corrected for these looks.
    """
    changed = plan_diff(old, new) if old else None
    if old is None or changed is None or len(changed.removed) == len(old.cells):
        return ()
    if not (changed.seeds_added or changed.added or changed.until or changed.planned):
        return old.looked
    seen = old.until.looks[0] if old.until else len(old.seeds)
    asked = runs_needed(old, lookup, [seen] * len(old.cells))
    complete = all(lookup(run_id(run)) for run in asked)
    return (*old.looked, *[seen] * complete)


def _chosen(*plans: Plan) -> set[str]:
    return {path for plan in plans if plan.select for path in plan.select.over}


def renewal(old: Plan, new: Plan) -> str | None:
    """Return a line on cells of both plans that were trained with other versions of formulas; `None` if none were."""
    changed = plan_diff(old, new)
    if not changed.renewed:
        return None
    # The new plan may lack a part of the old one, because the same run is now written in another way (a chunk longer
    # than the sequences).
    present = {part: version for cell in old.cells for part, version in versions(_run(cell)).items()}
    moved = differing(old.made_with, new.made_with) or differing(old.made_with, present)
    moved = moved or "other versions of their formulas"
    return (
        f"{len(changed.renewed)} of {len(new.cells)} cells were trained with {moved} now: they are trained again, and "
        f"the old records stay"
    )


def _changed(before: Plan, after: Plan, gone: list[Cell], come: list[Cell]) -> tuple[tuple[str, Leaf, Leaf], ...]:
    """Return the keys in which every added cell differs from the removed cell that it replaces, if all differ alike.

    If both plans store what was written, only keys that somebody wrote count, unless only defaults have changed.
    Otherwise all keys count. The result is empty if cells differ in different ways.
    """
    over = _chosen(before, after)
    if len(gone) != len(come):
        return ()
    if before.written is None or after.written is None:
        found = {tuple(_moves(_first(old, over), _first(new, over))) for old, new in zip(gone, come, strict=True)}
    else:
        ours, theirs = ([_written(plan, cell) for cell in cells] for plan, cells in ((before, gone), (after, come)))
        found = {tuple(_rewritten(old, new)) for old, new in zip(ours, theirs, strict=True)}
    if found == {()}:  # nobody wrote another value, so a default has changed
        found = {tuple(_moves(_first(old, over), _first(new, over))) for old, new in zip(gone, come, strict=True)}
    return found.pop() if len(found) == 1 else ()


def _written(plan: Plan, cell: Cell) -> Flat:
    """Return the keys that were written for the cell: in the base, on the command line, or in its row."""
    own = (setting(path, value, "") for path, value in cell.values.items() if path != CHANGE)
    return overlaid(dict(plan.written or {}), parents_first(own))


def _rewritten(old: Flat, new: Flat) -> Iterator[tuple[str, Leaf, Leaf]]:
    """Yield (key, old value, new value) for the keys that were written for either run and whose values differ.

    Keys that only one of the runs can have are left out, since the changed name of the mixer or the task implies them.
    """
    given = {*old, *new} - UNSCIENTIFIC
    for path in (path for path in by_path() if path in given):
        before, after = value_at(old, path), value_at(new, path)
        if ABSENT not in (before, after) and differ(path, before, after):
            yield path, normalised(path, before), normalised(path, after)


def _first(cell: Cell, over: set[str]) -> dict[str, Leaf]:
    return {path: value for path, value in _science(_run(cell)) if path not in over}


def _run(cell: Cell) -> RunConfig:
    return next(iter(cell.candidates[0].runs.values()))


def _moves(old: dict[str, Leaf], new: dict[str, Leaf]) -> Iterator[tuple[str, Leaf, Leaf]]:
    """Yield (key, old value, new value) for the keys whose values differ.

    Keys that only one of the runs has are left out, since the changed name of the mixer or the task implies them.
    """
    for path, value in new.items():
        if path in old and old[path] != value:
            yield path, old[path], value


def _ground(cell: Cell, over: set[str]) -> frozenset[_Config]:
    """Return the configs of a cell without the seeds and without the keys in `over`, which the cell chooses."""
    return frozenset(frozenset(item for item in config if item[0] not in over) for config in _all(cell))


def _all(cell: Cell) -> frozenset[_Config]:
    runs = (next(iter(candidate.runs.values())) for candidate in cell.candidates)
    return frozenset(map(_config, runs))


def _config(run: RunConfig) -> _Config:
    return frozenset(_science(run))


def _science(run: RunConfig) -> Iterator[tuple[str, Leaf]]:
    """Yield the run's keys, without its seed and without the keys that change nothing in its result."""
    return (item for item in leaves(canonical(run)) if item[0] != "seed" and item[0] not in UNSCIENTIFIC)


def _same_ids(old: Cell, new: Cell, seeds: list[int]) -> bool:
    """Return whether each config has the same run id in both cells. If not, a formula has another version."""
    ids = {key: name for each in old.candidates for key, name in _named(each, seeds)}
    return all(ids.get(key, name) == name for each in new.candidates for key, name in _named(each, seeds))


def _named(candidate: Candidate, seeds: list[int]) -> list[tuple[tuple[int, _Config], str]]:
    ids = candidate.run_ids()
    return [((seed, _config(candidate.runs[seed])), ids[seed]) for seed in seeds]

"""Make a plan from a grid file: base, overrides, rows, conditions, selection, seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from mclab.config.keys import named_sections, shown
from mclab.config.parse import quoted
from mclab.config.strict import ConfigError
from mclab.plan.cells import Ground, Remarks, cells
from mclab.plan.conditions import exclude, when
from mclab.plan.dotted import Setting, base_of, check_top, overlaid, question_of, value_at
from mclab.plan.loader import load, read
from mclab.plan.overrides import (
    SMOKE_NOTE,
    SMOKE_SEEDS,
    CommandLine,
    parse_overrides,
    refuse_varied,
    seeds_from_text,
    smaller,
    smoke_limits,
)
from mclab.plan.paper import PAPER, paper_from
from mclab.plan.plan import Cell, Given, Plan, row_name
from mclab.plan.quick import NOTE, QUICK, reduced
from mclab.plan.rows import MOST_RUNS, Rows, refuse_many, rows
from mclab.plan.seeds import Until, resolution, seeds_from, until_from
from mclab.plan.select import refuse_double, select_from
from mclab.plan.source import Source, name_of

#: The keys at the top of a grid.
KEYS = ("question", "base", "grid", "zip", "changes", "runs", "when", "exclude", "select", "seeds", PAPER, QUICK)


def load_plan(
    path: str | Path,
    overrides: Sequence[str] = (),
    seeds: str | None = None,
    smoke: bool = False,
    quick: bool = False,
    content: bytes | None = None,
) -> Plan:
    """Return the plan of a YAML grid. `overrides` are texts like `train.steps=50`, `seeds` is a text like `0..4`.

    With `quick`, return the plan of the reduced form in the grid's quick block. `content` is the content of the file,
    if it has been read already. Raises `ConfigError` with file, line, key and a suggestion, and no other error whatever
    the file contains.
    """
    data, source = load(read(path) if content is None else content, str(path))
    if data is None:
        raise ConfigError(
            f"{path}: the file is empty; the keys of a grid are {', '.join(KEYS)}, e.g. grid: {{model.mixer.gate: "
            "[context, none]}"
        )
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{path}: the file must be a mapping with some of the keys {', '.join(KEYS)}, got {quoted(data)}"
        )
    return plan_from(data, name_of(path), overrides, seeds, smoke, source, quick)


def plan_from(
    data: Mapping[str, Any],
    name: str,
    overrides: Sequence[str] = (),
    seeds: str | None = None,
    smoke: bool = False,
    source: Source | None = None,
    quick: bool = False,
) -> Plan:
    """Return the plan of a grid given as data; `{}` is one run with defaults. See `load_plan`.

    `name` is the name of the plan and, without a `source`, of the place in messages.
    """
    given = Given(source.name if source else None, tuple(overrides), seeds, smoke, quick)
    source = source or Source(name)
    check_top(data, KEYS, "a grid", "it belongs under base", {"space": "it is for mclab sweep --space"}, source)
    line = CommandLine(*parse_overrides(overrides), seeds, smoke)
    if quick:
        return _published(_given(_quick_plan(data, name, line, source), given), data, source)
    if QUICK in data:
        _check_quick(data, name, source)
    full = {key: value for key, value in data.items() if key != QUICK}
    return _published(_given(_plan(full, name, line, source), given), data, source)


def _given(plan: Plan, given: Given) -> Plan:
    return replace(plan, given=replace(given, steps=plan.given.steps if plan.given else 0))


def _published(plan: Plan, data: Mapping[str, Any], source: Source) -> Plan:
    """Return the plan with the grid's `paper` block. The block is the same in the full and in the quick form."""
    if PAPER not in data:
        return plan
    return replace(plan, paper=paper_from(data[PAPER], known_rows(data, plan), source))


def known_rows(data: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return the names of a grid's rows in its full and its quick form; without changes, the names of its cells."""
    quick = data.get("quick")
    blocks = (data.get("changes"), quick.get("changes") if isinstance(quick, Mapping) else None)
    written = [str(name) for block in blocks if isinstance(block, Mapping) for name in block]
    return list(dict.fromkeys([*written, *map(row_name, plan.cells)]))


def _quick_plan(data: Mapping[str, Any], name: str, line: CommandLine, source: Source) -> Plan:
    """Return the plan of the reduced grid. It may have fewer seeds than the `select` of the full grid asks for."""
    small, moved = reduced(data, source)
    line = replace(line, fewer=line.fewer or "select" not in data[QUICK])
    plan = _plan(small, f"{name}-{QUICK}", line, moved)
    return replace(plan, notes=(NOTE, *plan.notes))


def _check_quick(data: Mapping[str, Any], name: str, source: Source) -> None:
    """Raise `ConfigError` for an error in the quick form, so that it is found before anybody uses this form."""
    reduced(data, source)
    try:
        _quick_plan(data, name, CommandLine(), source)
    except ConfigError as error:
        raise ConfigError(*(f"{line} (in the quick form)" for line in error.lines)) from None


def _plan(data: Mapping[str, Any], name: str, line: CommandLine, source: Source) -> Plan:
    remarks = Remarks()
    base, seed = base_of(data.get("base"), source)
    wanted, until = _seeds(data, seed, line, source)
    table = rows(data, source)
    first = wanted[: until.looks[0]] if until else wanted  # candidates are chosen before the first look
    rule, combos = select_from(data.get("select"), first, line.about_seeds, source, remarks.notes)
    chosen = rule.over if rule else ()
    refuse_varied(line.settings, _varied(table), chosen)
    refuse_double(chosen, _varied(table), source)
    conditions = when(data.get("when"), source)
    excluded = exclude(data.get("exclude"), source, chosen)
    counts = {"cells": len(table.drafts), "candidates": len(combos), "seeds": len(wanted)}
    factors = " x ".join(f"{number} {noun}" for noun, number in counts.items() if number > 1)
    refuse_many("grid", prod(counts.values()), f"runs ({factors})", source, MOST_RUNS)
    limits = smoke_limits(line.settings) if line.smoke else {}
    ground = Ground(overlaid(base, line.settings), line.settings, conditions, excluded, combos, wanted, source, limits)
    remarks.warnings.update(dict.fromkeys((*conditions.idle((*table.axes, *chosen)), *_unnamed(table))))
    found = cells(table, ground, remarks)
    steps = value_at(base, "train.steps")  # a wrong value has been refused with the cells
    return Plan(
        name=name,
        question=question_of(data.get("question"), source),
        axes=table.axes,
        cells=found,
        select=rule,
        seeds=wanted,
        notes=(*[SMOKE_NOTE] * line.smoke, *table.notes, *_baseline(table, found[0]), *remarks.notes),
        warnings=tuple(remarks.warnings),
        named=table.named,
        listed=len(table.drafts),
        written=smaller(ground.base, limits),
        until=_resolved(until, found),
        given=Given(steps=steps if isinstance(steps, int) else 0),
    )


def _resolved(until: Until | None, cells: tuple[Cell, ...]) -> Until | None:
    """Return the rule with the coarsest resolution of the metric over all rows."""
    if until is None:
        return None
    return replace(until, step=resolution(next(iter(cell.candidates[0].runs.values())) for cell in cells))


def _seeds(
    data: Mapping[str, Any], seed: int | None, line: CommandLine, source: Source
) -> tuple[tuple[int, ...], Until | None]:
    """Return the seeds, and the rule that adds seeds if the grid's own seeds are used and are sequential.

    The seeds are those of the command line, else those of the grid, else the base's `seed`, else 0.
    """
    one = seed if line.seed is None else line.seed
    if line.seed is not None and (line.seeds is not None or "seeds" in data):
        way = "keep --seeds" if line.seeds is not None else f"write --seeds {line.seed}..{line.seed}"
        raise ConfigError(f"seed={line.seed}: seed: both seed and seeds are given; {way}")
    if one is not None and (line.seeds is not None or "seeds" in data):
        raise source.error("base.seed", "seed: both seed and seeds are given; keep seeds")
    given, until = data.get("seeds", [one or 0]), None
    if isinstance(given, Mapping):
        until, start = until_from(given, source)
        given = list(range(start, start + until.most))
    found = seeds_from(given, lambda text: source.error("seeds", text))
    if line.seeds is not None:
        found, until = seeds_from_text(line.seeds), None
    return (found[:SMOKE_SEEDS], None) if line.smoke else (found, until)


def _varied(table: Rows) -> list[Setting]:
    return list({id(item): item for draft in table.drafts for item in draft.settings}.values())


def _baseline(table: Rows, first: Cell) -> list[str]:
    """Return a note that names the baseline if no change is empty, since the base itself is then not a row."""
    if not table.named or any(not draft.settings for draft in table.drafts):
        return []
    return [f"the baseline is `{first.name}`, the first change; add `base: {{}}` on top to compare with the base"]


def _unnamed(table: Rows) -> list[str]:
    """Return a warning for each mapping without a name, which may have been meant to change only the keys in it."""
    return [
        (
            f"{item.where}: {item.path}: {shown(item.value)} replaces the whole mapping, and its other keys have their "
            f"defaults; add a name to confirm this, or write {item.path}.KEY to change one key"
        )
        for item in _varied(table)
        if item.path in named_sections() and item.clears and f"{item.path}.name" not in item.flat
    ]

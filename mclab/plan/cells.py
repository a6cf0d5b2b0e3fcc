"""Turn drafts into cells: drop excluded ones, check the others, leave out keys without effect, merge equal cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mclab.config.ids import UNSCIENTIFIC, canonical, inert
from mclab.config.keys import sections, shown
from mclab.config.lengths import length_faults
from mclab.config.own import checked, slow
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.variants import check_mix, check_test_variants
from mclab.config.warnings import warnings_of
from mclab.plan.conditions import Condition, When
from mclab.plan.dotted import Flat, Setting, nested, overlaid, refuse_contradictions, written_at
from mclab.plan.overrides import smaller
from mclab.plan.plan import CHANGE, Candidate, Cell
from mclab.plan.rows import Draft, Rows
from mclab.plan.source import Source

#: The most errors that are printed; further ones are only counted.
MOST_FAULTS = 8
_MOST_NAMED = 3


@dataclass(frozen=True)
class Ground:
    """What all cells share: base, settings of the command line, rules, candidates, seeds, and the limits of --smoke.

    `given` are the settings of the command line, which `base` includes; `combos` are the settings of each candidate.
    """

    base: Flat
    given: tuple[Setting, ...]
    when: When
    exclude: tuple[Condition, ...]
    combos: tuple[tuple[Setting, ...], ...]
    seeds: tuple[int, ...]
    source: Source
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Remarks:
    """Notes and warnings that come up while the plan is made."""

    notes: list[str] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)


def cells(rows: Rows, ground: Ground, remarks: Remarks) -> tuple[Cell, ...]:
    """Return the distinct cells of the rows. Raises `ConfigError` with one line for each distinct error."""
    labels, kept, faults = _labels(rows.axes), list[_Row](), dict[str, list[str]]()
    drafts = _included(rows, ground, labels, remarks)
    for draft, written in drafts:
        try:
            cell, warnings = _cell(draft, ground, rows.axes, labels)
            kept.append(_Row(cell, written, warnings))
        except ConfigError as error:
            for line in error.lines:
                faults.setdefault(line, []).append(written)
    if faults:
        raise ConfigError(*_faults(faults, len(drafts)))
    for row in kept:
        remarks.warnings.update(dict.fromkeys(row.warnings))
    runs = (run for row in kept for candidate in row.cell.candidates for run in candidate.runs.values())
    remarks.notes.extend(dict.fromkeys(line for run in runs for line in slow(run)))
    return _merged(kept, len(rows.drafts), remarks.notes)


def _included(rows: Rows, ground: Ground, labels: dict[str, str], remarks: Remarks) -> list[tuple[Draft, str]]:
    """Return the drafts that `exclude` does not match, each with its name.

    Keys whose `when` condition does not hold are removed from the drafts.
    """
    used = set[int]()
    kept: list[tuple[Draft, str]] = []
    slims = [replace(draft, settings=ground.when.kept(ground.base, draft.settings)) for draft in rows.drafts]
    remarks.warnings.update(dict.fromkeys(_unmet(rows, slims, ground)))
    for number, (draft, slim) in enumerate(zip(rows.drafts, slims, strict=True)):
        hits = _excluded(slim, ground)
        used |= hits
        if hits:
            continue
        written = _name(draft, _values(draft, rows.axes), labels)
        if not kept and number:
            remarks.notes.append(f"exclude removes the first cell, so that the baseline is {written}")
        kept.append((slim, written))
    if not kept:
        raise ground.source.error("exclude", "exclude: every cell is excluded; leave at least one")
    unused = [rule.text for number, rule in enumerate(ground.exclude) if number not in used]
    remarks.warnings.update(dict.fromkeys(f"exclude: {text} matches no cell" for text in unused))
    return kept


def _unmet(rows: Rows, slims: Sequence[Draft], ground: Ground) -> Iterator[str]:
    """Yield a warning for every varied key that has an effect in no cell, as its `when` condition never holds."""
    chosen = {item.path for combo in ground.combos for item in combo}
    for path, rule in ground.when.rules.items():
        combos = ground.combos if path in chosen else ((),)
        cells = (ground.when.kept(ground.base, (*slim.settings, *combo)) for slim in slims for combo in combos)
        varied = path in chosen or path in rows.axes
        if varied and not any(item.path == path for cell in cells for item in cell):
            yield f"when: {path}: the condition {rule.text} holds in no cell, so that {path} is never varied"


def _excluded(draft: Draft, ground: Ground) -> set[int]:
    """Return the numbers of the conditions under `exclude` that match the draft."""
    if not ground.exclude:
        return set()
    flat = overlaid(ground.base, draft.settings)
    return {number for number, rule in enumerate(ground.exclude) if rule.holds(flat)}


@dataclass(frozen=True)
class _Row:
    """A cell, its name as written, and the warnings about its runs in the form in which they were written."""

    cell: Cell
    written: str
    warnings: tuple[str, ...]


def _cell(draft: Draft, ground: Ground, axes: Sequence[str], labels: dict[str, str]) -> tuple[Cell, tuple[str, ...]]:
    """Return a cell with all its candidates, and the warnings about them.

    Candidates that are the same run are merged.
    """
    found: dict[RunConfig, Candidate] = {}
    warnings: dict[str, None] = {}
    dead: frozenset[str] | None = None
    for combo in ground.combos:
        run = _resolve(ground.when.kept(ground.base, (*draft.settings, *combo)), ground)
        inner = inert(run) | UNSCIENTIFIC
        dead = inner if dead is None else dead & inner
        # --smoke reduces the steps so much that every grid would get these warnings.
        warnings |= dict.fromkeys(
            line for line in warnings_of(run) if not (ground.limits and line.startswith("train."))
        )
        same = canonical(run)
        if same not in found:
            values = {item.path: _leaf(item.value) for item in combo if item.path not in inner}
            made = _as_trained(same, run)
            found[same] = Candidate(values, {seed: made.model_copy(update={"seed": seed}) for seed in ground.seeds})
    values = _values(draft, axes)
    # a crossed cell keeps all its values, since they decide which cells are compared with each other
    if draft.change is None:
        values = {path: value for path, value in values.items() if path not in (dead or ())} or values
    return Cell(_name(draft, values, labels), values, tuple(found.values())), tuple(warnings)


def _resolve(settings: tuple[Setting, ...], ground: Ground) -> RunConfig:
    everything = (*ground.given, *settings)

    def where(path: str) -> str:
        return written_at(path, everything, ground.source)

    refuse_contradictions(settings)
    run = checked(parse_run(nested(smaller(overlaid(ground.base, settings), ground.limits), where), where), where)
    _check_variants(run, where)
    if faults := [f"{where(key)}: {key}: {reason}" for key, reason in length_faults(run)]:
        raise ConfigError(*dict.fromkeys(faults))
    return run


def _check_variants(run: RunConfig, where: Callable[[str], str]) -> None:
    """Raise `ConfigError` for test variants that add nothing or are too small, and for a mix that has a task twice."""
    key = "eval.task"
    try:
        check_test_variants(run.task, run.test_variants, run.eval.test)
        key = "train.task"
        check_mix(run.mix)
    except ValueError as error:
        raise ConfigError(f"{where(key)}: {key}: {error}") from None


def _as_trained(run: RunConfig, given: RunConfig) -> RunConfig:
    """Return `run` with the values of `given` for keys that do not change its result."""
    for name, _, key in (path.partition(".") for path in sorted(UNSCIENTIFIC)):
        section, value = getattr(run, name), getattr(getattr(given, name), key)
        if getattr(section, key) != value:
            run = run.model_copy(update={name: section.model_copy(update={key: value})})
    return run


def _leaf(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _values(draft: Draft, axes: Sequence[str]) -> dict[str, Any]:
    found = {item.path: item.value for item in draft.settings}
    if draft.change is not None:
        found[CHANGE] = draft.change
    return {path: found[path] for path in axes if path in found}


def _labels(axes: Sequence[str]) -> dict[str, str]:
    """Return {path: label} for the axes. The label is the last part of the path.

    It is the whole path if two axes have the same last part, or if that part is the name of a section.
    """
    last = [path.rpartition(".")[2] for path in axes]
    return {
        path: path if last.count(word) > 1 or word in sections() else word
        for path, word in zip(axes, last, strict=True)
    }


def _name(draft: Draft, values: dict[str, Any], labels: dict[str, str]) -> str:
    if draft.name is not None:
        return draft.name
    parts = (value if path == CHANGE else f"{labels[path]}={shown(value)}" for path, value in values.items())
    return ", ".join(parts) or "base"


def _faults(faults: dict[str, list[str]], count: int) -> list[str]:
    """Return one line per error. It names the first cell that has the error, unless all cells have it."""
    lines = []
    for line, names in faults.items():
        names = list(dict.fromkeys(names))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(line if len(names) == count else f"{line} (cell {names[0]}{more})")
    rest = [f"... and {len(lines) - MOST_FAULTS} more"] if len(lines) > MOST_FAULTS else []
    return lines[:MOST_FAULTS] + rest


def _merged(rows: Sequence[_Row], listed: int, notes: list[str]) -> tuple[Cell, ...]:
    """Return the first cell of each set of equal cells. If cells were excluded or merged, add a note."""
    first: dict[tuple[str, frozenset[RunConfig]], _Row] = {}
    same: list[str] = []
    for row in rows:
        runs = frozenset(canonical(next(iter(candidate.runs.values()))) for candidate in row.cell.candidates)
        kept = first.setdefault((_crossed_with(row.cell), runs), row)
        if kept is not row:
            same.append(f"{row.written} is the same as {kept.written}")
    excluded = [f"{listed - len(rows)} excluded"] * (listed > len(rows))
    if same or excluded:
        more = f"; and {len(same) - _MOST_NAMED} more" if len(same) > _MOST_NAMED else ""
        named = f": {'; '.join(same[:_MOST_NAMED])}{more}" if same else ""
        notes.append(f"{', '.join([f'{listed} cells', *excluded, f'{len(first)} distinct'])}{named}")
    return tuple(row.cell for row in first.values())


def _crossed_with(cell: Cell) -> str:
    """Return as text the values that a change is crossed with; each combination of them has its own baseline."""
    return shown(
        {path: value for path, value in cell.values.items() if path != CHANGE} if CHANGE in cell.values else {}
    )

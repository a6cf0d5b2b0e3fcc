"""`mclab compare`: compare two groups of stored runs by their means, a paired test, and what else differs."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.ids import inert
from mclab.config.keys import by_path, shown
from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun, clashing
from mclab.config.strict import ConfigError, leaves
from mclab.report.prose.notes import MIXABLE
from mclab.report.stats import Difference, Spread, paired, spread
from mclab.report.table.accuracy import scores
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary, summarise
from mclab.report.text import full_label, natural, plain, seeds_text, value_text
from mclab.store import Records
from mclab.store.files import usable

_FILTER = re.compile(r"[\w.]+=.*")
#: The most names of rows that a message lists.
_MOST_NAMED = 6
#: Facts about machine and software that should be equal in both groups: those that tables check, and the commit.
_MACHINE = (*MIXABLE, ("checkouts", lambda record: record.fact("git")))


@dataclass(frozen=True)
class Group:
    """One side of a comparison: one row of a table, or several rows whose accuracies are averaged for each seed."""

    name: str
    folder: Path
    rows: tuple[Row, ...]

    def by_seed(self, part: str) -> dict[int, float]:
        """Return {seed: accuracy on the slice `part`}, averaged over the rows, for the seeds that all rows have."""
        every = [scores(row.records, part) for row in self.rows]
        return {seed: fmean(own[seed] for own in every) for seed in every[0] if all(seed in own for own in every)}

    @property
    def parts(self) -> list[str]:
        """The slices that all rows are scored on."""
        return [part for part in self.rows[0].slices if all(part in row.slices for row in self.rows)]

    @property
    def own(self) -> set[frozenset[str]]:
        """The sets of slices over which the rows' mean accuracies are; more than one if rows have different slices."""
        return {frozenset(row.own) for row in self.rows}

    @property
    def records(self) -> list[StoredRun]:
        """The records of all runs."""
        return [record for row in self.rows for record in row.records.values()]


@dataclass(frozen=True)
class Line:
    """The comparison on one slice: both groups, and in `gap` the second minus the first with an unadjusted p."""

    part: str
    first: Spread
    second: Spread
    gap: Difference


@dataclass(frozen=True)
class Comparison:
    """Two groups compared slice by slice.

    `differs` lists the keys that are meant to differ, since the tables vary them; `also` lists everything else that
    differs.
    """

    first: Group
    second: Group
    lines: tuple[Line, ...]
    differs: tuple[str, ...]
    also: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON. The interval of a difference is not clipped."""
        sides = {
            word: {"folder": str(group.folder), "rows": [row.label for row in group.rows]}
            for word, group in (("first", self.first), ("second", self.second))
        }
        lines = [
            {"slice": line.part, **{word: asdict(getattr(line, word)) for word in ("first", "second")}}
            | {"difference": asdict(line.gap)}
            for line in self.lines
        ]
        return {**sides, "slices": lines, "differs": list(self.differs), "also": list(self.also)}


def comparisons(words: Sequence[str], say: Callable[[str], None]) -> list[Comparison]:
    """Return the comparisons that `words`, the arguments of `mclab compare`, ask for.

    `FOLDER A B` compares two rows of one folder, `FOLDER:A FOLDER:B` rows of two folders, and `FOLDER FOLDER` each row
    with the row of the same name in the other folder. Raises `ConfigError` for other arguments and for unknown rows.
    """
    if len(words) == 3 and not _split(words[1])[1]:
        found = _summary(Path(words[0]), say)
        return [_compared(*(_group(found, Path(words[0]), word) for word in words[1:]))]
    if len(words) != 2:
        raise ConfigError(
            "compare: give two rows of one folder (FOLDER ROW ROW), two rows (FOLDER:ROW FOLDER:ROW) or two folders"
        )
    sides = [_split(word) for word in words]
    if os.path.isdir(words[0]) and sides[1][1] is None and not sides[1][0].exists():
        raise ConfigError(
            f"compare: {words[1]} is no folder; to compare two rows of {words[0]} name both, "
            f"e.g. mclab compare {words[0]} {words[1]} ROW"
        )
    summaries = [_summary(folder, say) for folder, _ in sides]
    if any(row is not None for _, row in sides):
        asked = [row if row is not None else _same(sides, summaries, place) for place, (_, row) in enumerate(sides)]
        groups = [_group(s, folder, row) for s, (folder, _), row in zip(summaries, sides, asked, strict=True)]
        return [_compared(groups[0], groups[1])]
    return list(_row_by_row(summaries, [folder for folder, _ in sides]))


def _same(sides: Sequence[tuple[Path, str | None]], summaries: Sequence[Summary], place: int) -> str:
    """Return the row of folder number `place` if the user named none there.

    This is its only row, or else the row with the name that the user gave for the other folder.
    """
    rows = summaries[place].rows
    return rows[0].label if len(rows) == 1 else str(sides[1 - place][1])


def _split(word: str) -> tuple[Path, str | None]:
    """Split `runs/a:context` into folder and row, if `runs/a` is a folder; otherwise return the path and `None`."""
    if os.path.isdir(word):
        return Path(word), None
    for found in re.finditer(":", word):
        if os.path.isdir(word[: found.start()]) and found.start():
            return Path(word[: found.start()]), word[found.end() :]
    return usable(Path(word), "compare"), None


def _summary(folder: Path, say: Callable[[str], None]) -> Summary:
    records = Records(folder, say=say)
    plan = records.plan()
    if plan is None:
        raise ConfigError(
            f"{folder}: this folder has no plan.json and so no rows; give the folder of an ablate command"
        )
    return summarise(plan, records.lookup, records.curve)


def _row_by_row(summaries: Sequence[Summary], folders: Sequence[Path]) -> Iterator[Comparison]:
    ours, theirs = ({row.label: row for row in summary.rows} for summary in summaries)
    if len(ours) == len(theirs) == 1:
        pairs = [(summaries[0].rows[0], summaries[1].rows[0])]
    else:
        pairs = [(row, theirs[label]) for label, row in ours.items() if label in theirs]
    if not pairs:
        raise ConfigError(
            f"compare: {folders[0]} and {folders[1]} have no row of the same name; "
            f"write {folders[0]}:{next(iter(ours))} {folders[1]}:{next(iter(theirs))}"
        )
    for one, other in pairs:
        groups = [Group(row.label, folder, (row,)) for row, folder in zip((one, other), folders, strict=True)]
        yield _compared(groups[0], groups[1])


def _group(summary: Summary, folder: Path, text: str) -> Group:
    """Return the row with the name `text`, or all rows that match `text` as `key=value,key=value`."""
    named = [row for row in summary.rows if text in _names(row, summary)]
    if len(named) == 1:
        return Group(named[0].label, folder, (named[0],))
    wanted = _filter(text, summary, folder) if _FILTER.fullmatch(text) else None
    rows = [row for row in summary.rows if wanted is not None and _matches(row, wanted)]
    if not rows:
        raise _unknown(summary, folder, text)
    return Group(rows[0].label if len(rows) == 1 else f"{text} (mean of {len(rows)} rows)", folder, tuple(rows))


def _names(row: Row, summary: Summary) -> set[str]:
    return {row.label, row.cell.name, full_label(row.values, summary.names)}


def _filter(text: str, summary: Summary, folder: Path) -> dict[str, str]:
    """Return {path: value} from `key=value,key=value`. A comma separates only if another `key=` follows it."""
    paths = {name: path for path, name in summary.names.items()} | {path: path for path in summary.names}
    wanted: dict[str, str] = {}
    for part in re.split(r",\s*(?=[\w.]+=)", text):
        key, _, value = part.partition("=")
        path = paths.get(key.strip())
        if path is None or path not in summary.plan.axes:
            known = [name for path, name in summary.names.items() if path in summary.plan.axes]
            hint = did_you_mean(key, known) or f"{folder} varies {', '.join(known) or 'nothing'}"
            raise ConfigError(f"{text}: {key} is no key that the grid varies; {hint}")
        wanted[path] = value.strip()
    return wanted


def _matches(row: Row, wanted: Mapping[str, str]) -> bool:
    return all(
        path in row.values and value in (value_text(row.values[path]), shown(row.values[path]))
        for path, value in wanted.items()
    )


def _unknown(summary: Summary, folder: Path, text: str) -> ConfigError:
    labels = [row.label for row in summary.rows]
    more = f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else ""
    rows = "; ".join(labels[:_MOST_NAMED])
    hint = did_you_mean(text, labels) or f"the rows are {rows}{more}"
    return ConfigError(f"{folder}: there is no row {text!r}; {hint}")


def _compared(first: Group, second: Group) -> Comparison:
    for group in (first, second):
        if not group.by_seed(ALL):
            raise ConfigError(f"{group.folder}: {group.name} has no finished run to compare")
    if mixed := clashing([*first.records, *second.records]):
        told = ", ".join(f"{part} {' and '.join(several)}" for part, several in mixed.items())
        raise ConfigError(
            f"compare: {first.name} and {second.name} were trained with different versions of formulas ({told}), so a "
            f"difference means nothing; train the older one again with this version of mclab"
        )
    same_slices = len(first.own | second.own) == 1
    shared = [part for part in first.parts if part in second.parts and first.by_seed(part) and second.by_seed(part)]
    parts = [*[ALL] * same_slices, *(shared if len(shared) > 1 or not same_slices else [])]
    if not parts:
        raise ConfigError(
            f"compare: {first.name} and {second.name} have no slice in common, so there is nothing to test"
        )
    ours, theirs = _keys(first), _keys(second)
    moved = {path: (ours[path], theirs[path]) for path in ours if path in theirs and ours[path] != theirs[path]}
    asked = {path for path in moved if _meant(path, first, second)}
    lines = {path: f"{path} {' or '.join(pair[0])} → {' or '.join(pair[1])}" for path, pair in moved.items()}
    return Comparison(
        first,
        second,
        tuple(_line(first, second, part) for part in parts),
        tuple(text for path, text in lines.items() if path in asked),
        (*(text for path, text in lines.items() if path not in asked), *_other_differences(first, second, same_slices)),
    )


def _line(first: Group, second: Group, part: str) -> Line:
    one, other = first.by_seed(part), second.by_seed(part)
    return Line(part, spread(list(one.values())), spread(list(other.values())), paired(other, one))


def _keys(group: Group) -> dict[str, list[str]]:
    """Return {path: values in the group's runs, as text}, without seeds and without keys that have no effect."""
    found: dict[str, dict[str, None]] = {}
    for row in group.rows:
        for seed in row.records:
            assert row.candidate is not None, "a row without a choice has no records"
            run = row.candidate.runs[seed]
            own = {path: value for path, value in leaves(run) if path not in inert(run)}
            own |= {path: value for path, value in row.values.items() if path in by_path()}
            for path, value in own.items():
                if path != "seed":
                    found.setdefault(path, {})[shown(plain(value))] = None
    return {path: sorted(values, key=natural) for path, values in found.items()}


def _meant(path: str, first: Group, second: Group) -> bool:
    """Return whether a key is meant to differ, because the rows vary it, alone or as part of a mapping.

    Within one folder every key is meant to differ, except those of `select`, which each row chose. The varied keys
    alone are not enough: `gate: none` is stored as aggregate residual, so these rows differ in a key that is not the
    varied one.
    """
    rows = (*first.rows, *second.rows)
    if first.folder == second.folder:
        return not any(row.candidate and path in row.candidate.values for row in rows)
    return any(path == own or path.startswith(f"{own}.") for row in rows for own in row.cell.values)


def _other_differences(first: Group, second: Group, same_slices: bool) -> Iterator[str]:
    """Yield a line for each property (seeds, slices, machine, versions) that differs between the groups."""
    one, other = set(first.by_seed(ALL)), set(second.by_seed(ALL))
    if one != other:
        both = seeds_text(sorted(one & other)) if one & other else "none"
        yield f"seeds {seeds_text(sorted(one))} and {seeds_text(sorted(other))}; paired over {both}"
    if not same_slices:
        yield "slices, so the means over all of them are not compared"
    for what, fact in _MACHINE:
        ours, theirs = (_values(group, fact) for group in (first, second))
        if ours != theirs:
            yield f"{what} {' or '.join(sorted(ours))} and {' or '.join(sorted(theirs))}"


def _values(group: Group, fact: Callable[[StoredRun], str | None]) -> set[str]:
    return {"unknown" if (value := fact(record)) is None else value for record in group.records}

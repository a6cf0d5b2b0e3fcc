"""What a dry run and a list of runs look like to people: aligned columns and plain sentences."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from mclab.printable import one_line
from mclab.report.text import NOTHING, aligned, cut

if TYPE_CHECKING:
    from mclab.preview import Preview
    from mclab.report.power import Power

#: Cells that a dry run lists; of more it tells how many.
MOST_CELLS = 40
#: Longer texts in a column are cut.
_LONGEST = 60
_DIGITS = {"valid_accuracy": 3, "test_accuracy": 3, "valid_loss": 3, "test_loss": 3, "tokens_per_s": 0, "wall_s": 1}
#: What `list` leaves to --json.
_JSON_ONLY = ("valid_loss", "test_loss", "params", "tokens_per_s")


def in_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned rows, long texts cut except in the last column; each text on one line."""
    shown = [[one_line(text) for text in row] for row in rows]
    return aligned([[*(cut(text, _LONGEST) for text in row[:-1]), *row[-1:]] for row in shown], right)


def section(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A head, and aligned rows set in below it; `none` where there is no row."""
    return f"{head}\n{indent(in_columns(rows or [('none', '')]), '  ')}"


def preview_text(found: "Preview") -> str:
    """The question, the cells, and how much work they are."""
    rows: list[tuple[str, ...]] = [("cell", "parameters", "state fixed", "state cached")]
    for cell in found.cells[:MOST_CELLS]:
        rows.append((cell.name, *map(_figure, (cell.params, cell.state_fixed, cell.state_cached))))
    return "\n".join([*_head(found), in_columns(rows, right=(1, 2, 3)), *_rest(found), "", *_work(found)])


def _figure(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _head(found: "Preview") -> Iterator[str]:
    if found.plan.question:
        yield from (found.plan.question, "")


def _rest(found: "Preview") -> Iterator[str]:
    if (more := len(found.cells) - MOST_CELLS) > 0:
        yield f"… and {more} more cells; --json lists all"


def _work(found: "Preview") -> Iterator[str]:
    from mclab.report.text import seeds_text
    from mclab.runner.room import told
    from mclab.runner.span import in_words

    size, select = found.size, found.plan.select
    yield from found.plan.notes
    yield from (f"warning: {line}" for line in found.warnings)
    choice = f", {size.first} of them to choose {', '.join(select.over)} by" if select else ""
    seeds = f"seed{'s' * (len(found.plan.seeds) > 1)} {seeds_text(found.plan.seeds)}"
    until = found.plan.until
    seeds += f" until told, looks at {', '.join(map(str, until.looks))}" if until else ""
    runs = _count(size.runs, "run") if size.least == size.runs else f"{size.least:,} to {size.runs:,} runs"
    yield f"{_cells(found)}; {runs}{choice}; {seeds}"
    left = in_words(found.span, found.device, found.processes) if found.left else "nothing left to run"
    most = "at most " if until else ""
    yield f"{most}{size.tokens:,} training tokens; {found.stored or 'none'} of the runs stored in {found.out}; {left}"
    yield told(found.need, found.processes)
    if found.power:
        yield _power(found.power, until.most if until else len(found.plan.seeds), sequential=until is not None)


def _power(power: "Power", seeds: int, sequential: bool) -> str:
    """Which differences the plan tells, and how surely."""
    low, high = power.stored or (power.sd, power.sd)
    spread = f"{high:.3f}" if low == high else f"{low:.3f} to {high:.3f}, of which the largest is taken"
    source = f"stored: {spread}" if power.stored else f"given: {power.sd:.4g}"
    looked = f"at most {seeds} seeds, until told" if sequential else _count(seeds, "seed")
    least = " and ".join(f"{effect:.3f} in {100 * level:.0f} %" for level, effect in power.least.items())
    words = (
        f"power: {looked}, {_count(power.rows, 'row')} compared, standard deviation of paired differences {source}; "
    )
    if power.power is not None:
        mean = f", {power.seeds:.1f} seeds a row on average" if power.seeds is not None else ""
        words += f"a difference of {power.effect:.4g} is told in {100 * power.power:.0f} % of repetitions{mean}; "
    return f"{words}the least difference told: {least}"


def _cells(found: "Preview") -> str:
    """Where cells are gone, in the words of the plan's own note: it knows how many were excluded."""
    listed = _count(found.size.listed, "cell")
    told = [note.partition(":")[0] for note in found.plan.notes if note.startswith(f"{listed}, ")]
    return told[0] if told else f"{listed}, {found.size.cells} distinct"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listing_text(rows: Sequence[dict[str, Any]]) -> str:
    """One line a run; columns in which nothing stands are left out."""
    if not rows:
        return "no runs stored"
    keys = [key for key in rows[0] if key not in _JSON_ONLY and any(row[key] is not None for row in rows)]
    right = [place for place, key in enumerate(keys) if all(isinstance(row[key], int | float | None) for row in rows)]
    return in_columns([keys, *([_shown(key, row[key]) for key in keys] for row in rows)], right)


def _shown(key: str, value: Any) -> str:
    from mclab.config.keys import shown

    if value is None:
        return NOTHING
    return f"{value:,.{_DIGITS[key]}f}" if key in _DIGITS else shown(value)


def written(paths: Sequence[Path]) -> list[str]:
    """`wrote into runs/gating/tables: table.csv, table.md`, a line a folder."""
    folders = dict.fromkeys(path.parent for path in paths)
    names = {folder: [path.name for path in paths if path.parent == folder] for folder in folders}
    return [f"wrote into {folder}: {', '.join(inside)}" for folder, inside in names.items()]

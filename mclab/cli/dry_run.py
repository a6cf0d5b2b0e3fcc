"""Print the result of `--dry-run`: the cells of a plan, and how much work they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mclab.cli.output import in_columns, result, result_json
from mclab.config.options import RunOptions
from mclab.report.text import NOTHING

if TYPE_CHECKING:
    from mclab.plan.plan import Plan
    from mclab.report.power import Power
    from mclab.verbs.dry_run import Preview

#: The most cells that are listed; the others are only counted.
MOST_CELLS = 40


def show_preview(
    plan: "Plan",
    out: Path,
    options: RunOptions,
    as_json: bool,
    effect: float | None = None,
    sd: float | None = None,
) -> None:
    """Print the dry run of a plan."""
    from mclab.verbs.dry_run import preview

    found = preview(plan, out, options, effect, sd)
    if as_json:
        result_json(found.as_dict())
    else:
        result(preview_text(found))


def preview_text(found: "Preview") -> str:
    """Return the dry run as text: the question, a table of the cells, and how much work they are."""
    rows: list[tuple[str, ...]] = [("cell", "parameters", "state fixed", "state cached")]
    names, shared = _names(found.plan)
    for name, cell in list(zip(names, found.cells, strict=True))[:MOST_CELLS]:
        rows.append((name, *map(_figure, (cell.params, cell.state_fixed, cell.state_cached))))
    table = in_columns(rows, right=(1, 2, 3))
    return "\n".join([*_head(found), table, *_rest(found), *shared, "", *_work(found)])


def _names(plan: "Plan") -> tuple[list[str], list[str]]:
    """The cells' names without the values that are the same in all cells, and a line with these values, if any."""
    from mclab.report.text import column_names, full_label

    first, *others = (cell.values for cell in plan.cells)
    same = {
        path: value for path, value in first.items() if all(path in each and each[path] == value for each in others)
    }
    if plan.named or not others or not same:
        return [cell.name for cell in plan.cells], []
    labels = column_names(plan.axes)
    different = ({path: value for path, value in cell.values.items() if path not in same} for cell in plan.cells)
    return [full_label(values, labels) for values in different], [f"in every cell: {full_label(same, labels)}"]


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
    from mclab.runner.memory_limits import memory_text
    from mclab.runner.time_range import time_text

    size, select = found.size, found.plan.select
    yield from found.plan.notes
    yield from (f"warning: {line}" for line in found.warnings)
    choice = f", {size.first} of them to choose {', '.join(select.over)}" if select else ""
    seeds = f"seed{'s' * (len(found.plan.seeds) > 1)} {seeds_text(found.plan.seeds)}"
    until = found.plan.until
    seeds += f", added until told: tests at {', '.join(map(str, until.looks))} seeds" if until else ""
    runs = _count(size.runs, "run") if size.least == size.runs else f"{size.least:,} to {size.runs:,} runs"
    yield f"{_cells(found)}; {runs}{choice}; {seeds}"
    left = time_text(found.time, found.device, found.processes) if found.left else "nothing left to run"
    most = "at most " if until else ""
    yield (
        f"{most}{size.tokens:,} training tokens; {found.stored or 'none'} of the runs are stored in {found.out}; {left}"
    )
    yield memory_text(found.need, found.processes)
    if found.power:
        yield _power(found.power, until.most if until else len(found.plan.seeds), sequential=until is not None)


def _power(power: "Power", seeds: int, sequential: bool) -> str:
    """Return one line that says which differences the plan detects, and with which power."""
    low, high = power.stored or (power.sd, power.sd)
    spread = f"{high:.3f}" if low == high else f"{low:.3f} to {high:.3f}, the largest of which is used"
    source = f"{spread} (from stored runs)" if power.stored else f"{power.sd:.4g} (given)"
    looked = f"at most {seeds} seeds, added until told" if sequential else _count(seeds, "seed")
    least = " and ".join(f"{effect:.3f} in {100 * level:.0f} %" for level, effect in power.least.items())
    words = (
        f"power: {looked}, {_count(power.rows, 'row')} compared, standard deviation of paired differences {source}; "
    )
    if power.power is not None:
        mean = f", {power.seeds:.1f} seeds a row on average" if power.seeds is not None else ""
        words += f"a difference of {power.effect:.4g} is detected in {100 * power.power:.0f} % of repetitions{mean}; "
    return f"{words}the smallest difference that is detected: {least} of repetitions"


def _cells(found: "Preview") -> str:
    """Return the number of cells, e.g. `6 cells, 4 distinct`.

    If a note of the plan has these numbers, it is used, since it also counts excluded cells.
    """
    listed = _count(found.size.listed, "cell")
    told = [note.partition(":")[0] for note in found.plan.notes if note.startswith(f"{listed}, ")]
    return told[0] if told else f"{listed}, {found.size.cells} distinct"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"

"""Make the page of a grid, with the published table if the grid reproduces one."""

from collections.abc import Iterator, Sequence
from functools import partial

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.page.html import Block, Code, Files, Page, Plot, Section, Source, Table, Words, html
from mclab.report.page.settings import provenance, settings
from mclab.report.paper.comparison import Reproduction, reproduction
from mclab.report.paper.files import frame as paper_frame
from mclab.report.paper.text import how_to_read_paper, verdicts
from mclab.report.paper.text import tables as paper_tables
from mclab.report.plot.curves import MOST_LINES
from mclab.report.plot.kinds import figure_of
from mclab.report.plot.lines import numeric_axis
from mclab.report.plot.slice_cells import own_key
from mclab.report.plot.slices import CAPACITY
from mclab.report.plot.state import state_of
from mclab.report.plot.svg import NARROW, WIDE, drawing
from mclab.report.prose.advice import commands
from mclab.report.prose.effects import effect_sentences, how_to_read_effects
from mclab.report.prose.notes import alarms, notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.columns import row_heads, shown_columns, slice_columns
from mclab.report.table.effects import effect_columns, effects, effects_frame
from mclab.report.table.export import as_csv
from mclab.report.table.frames import cells_of, runs_of
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary, shortened, shortened_text, summarise
from mclab.report.table.tex import tex
from mclab.report.terminal import column_notes
from mclab.report.text import seeds_text

#: A width so large that no line of a table is broken; the page breaks the lines itself.
_UNBROKEN = 10**6
#: The figure of state sizes is drawn if the largest size is more than this many times the smallest.
STATE_FROM = 1.5
#: The alternative text of each kind of figure. It needs no numbers, since the tables hold them.
ALT = {
    "accuracy": "Test accuracy of every row with its interval and every seed, in a panel for each slice",
    "points": "Test accuracy of every row with its interval and every seed, one row below the other",
    "slices": "Test accuracy along the slices of the test, a line for each row",
    "capacity": "Test accuracy against the number of things to be kept, a line for each row",
    "heat": "Test accuracy as a map of two keys of the test, a panel for each row",
    "state": "Test accuracy against the state size in floats",
    "effects": "Effects of the axes and their interactions with their intervals",
    "curves": "Accuracy and loss on valid against training steps, a line for each row",
}


def grid_page(plan: Plan, lookup: Lookup, curve: Curve, source: Source) -> bytes:
    """Return the HTML page with all results of a grid. Raises `ConfigError` where no run has a result yet."""
    summary = summarise(plan, lookup, curve)
    if not any(row.accuracy.n for row in summary.rows):
        raise ConfigError(f"{source.folder}: no run has a result yet, so there is nothing to report")
    found = reproduction(plan, lookup, curve) if plan.paper else None
    kind = "reproduction" if found else "grid"
    kicker = f"{kind} {plan.name}, {len(summary.rows)} rows, seeds {seeds_text(plan.seeds)}"
    sections = _sections(summary, lookup, curve, source, found)
    return html(Page(plan.question or plan.name, kicker, _answer(summary, found), sections))


def _answer(summary: Summary, found: Reproduction | None) -> list[str]:
    """Return the sentences that answer the question; the terminal prints the same ones."""
    lines = [*(verdicts(found) if found else []), *verdict(summary), *(f"! {line}" for line in alarms(summary))]
    return lines or ["One row alone: there is nothing to compare it with."]


def _sections(
    summary: Summary, lookup: Lookup, curve: Curve, source: Source, found: Reproduction | None
) -> list[Section]:
    records = [record for row in summary.rows for record in row.records.values()]
    names = _distinct([row.label for row in summary.rows])
    runs = {name: _run(row) for name, row in zip(names, summary.rows, strict=True)}
    return [
        Section("paper", "Beside the published table", _paper(found) if found else []),
        Section("table", "Table", [_table(summary)]),
        Section("slices", "By slice", _slices(summary)),
        Section("plots", "Plots", list(_plots(summary, curve))),
        Section("effects", "Effects of the axes", _effects(summary)),
        Section("differences", "What the rows are", settings(runs)),
        Section("provenance", "Provenance", [provenance(records, source, seeds_text(summary.plan.seeds))]),
        Section("repeat", "Repeat it", _repeat(summary, source)),
        Section("downloads", "Downloads", [Files(_files(summary, lookup, found))]),
        Section("notes", "How to read it", [Words(notes(summary))]),
    ]


def _run(row: Row) -> RunConfig:
    """Return a run of the row's chosen candidate, or of the first candidate if none is chosen yet."""
    return next(iter(row.candidate.runs.values())) if row.candidate else row.run


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return `labels` with their numbers appended to those that occur several times."""
    return [label if labels.count(label) == 1 else f"{label} ({n})" for n, label in enumerate(labels, 1)]


def _paper(found: Reproduction) -> list[Block]:
    made: list[Block] = [
        Table(title or f"Ours beside {found.paper.source}", columns) for title, columns in paper_tables(found)
    ]
    return [*made, Words(how_to_read_paper(found))]


def _table(summary: Summary) -> Table:
    columns = shown_columns(summary)
    how = column_notes(columns, _UNBROKEN, summary.crossed, sequential=summary.looks is not None)
    return Table("Every row", columns, len(list(row_heads(summary))), under=how)


def _slices(summary: Summary) -> list[Block]:
    if not (columns := slice_columns(summary)):
        return []
    heads = len(list(row_heads(summary)))
    return [Table("Test accuracy by slice, mean ± standard deviation (seeds)", columns, heads, len(summary.rows))]


def _plots(summary: Summary, curve: Curve) -> Iterator[Block]:
    """Yield all figures that have something to show. Figures with lines show the first, the best and the worst rows."""
    few = shortened(summary, MOST_LINES)
    for kind in _kinds(summary):
        whole = summary if kind in ("accuracy", "points", "heat", "effects") else few
        left = shortened_text(few, summary, "the tables hold all.") if whole is few else ""
        draw = partial(figure_of, whole, kind, curve)
        alt = f"{ALT[kind]}. {summary.plan.question or summary.plan.name}"
        try:
            wide, narrow = (drawing(draw, f"{kind}{n}-", alt, each) for n, each in enumerate((WIDE, NARROW)))
        except ConfigError:
            continue  # the grid has nothing to draw for this kind
        yield Plot(kind, alt, wide, narrow)
        if left:
            yield Words([left])


def _kinds(summary: Summary) -> Iterator[str]:
    """Yield the names of the figures to draw. A figure that would show the same as another one is left out.

    E.g. `capacity` is left out if the `slices` figure already shows accuracy against the number of items.
    """
    yield "accuracy"
    yield from ["points"] * (numeric_axis(summary) is not None)
    yield "slices"
    yield from ["capacity"] * (own_key(summary.rows[0]) not in CAPACITY or len(summary.slices) < 2)
    sizes = [size for row in summary.rows if (size := state_of(row))]
    yield from ["heat", *["state"] * bool(sizes and max(sizes) > STATE_FROM * min(sizes)), "effects", "curves"]


def _effects(summary: Summary) -> list[Block]:
    if not (found := effects(summary)):
        return []
    lines = [line[0].upper() + line[1:] for line in (*effect_sentences(found), *how_to_read_effects(summary))]
    return [Table("Main effects and interactions", effect_columns(found), 2), Words(lines)]


def _repeat(summary: Summary, source: Source) -> list[Block]:
    """Return the commands that made and read the folder, and the commands for what to do next."""
    following = commands(summary, source.again) if source.again else []
    then = Code([_paste(line) for line in following], "What to do next:")
    return [Code(source.commands), *[then] * bool(following)]


def _paste(line: str) -> str:
    """Turn advice such as `add seeds: mclab ablate …` into a comment and a line that can be pasted."""
    what, _, text = line.partition(": ")
    return f"# {what}\n{text}"


def _files(summary: Summary, lookup: Lookup, found: Reproduction | None) -> dict[str, bytes]:
    files = {"table.csv": as_csv(cells_of(summary)), "runs.csv": as_csv(runs_of(summary, lookup))}
    if known := effects(summary):
        files["effects.csv"] = as_csv(effects_frame(known))
    if found:
        files["paper.csv"] = as_csv(paper_frame(found))
    return {**files, "table.tex": tex(summary, notes=notes(summary)).encode()}

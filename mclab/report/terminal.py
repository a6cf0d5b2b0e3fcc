"""Write the table as plain text for the end of a command, aligned and limited to a width."""

from collections.abc import Sequence
from textwrap import fill

from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.prose.advice import MORE_SEEDS, commands
from mclab.report.prose.effects import effect_sentences, how_to_read_effects
from mclab.report.prose.notes import alarms
from mclab.report.prose.verdict import verdict
from mclab.report.table.accuracy import SOLVED
from mclab.report.table.columns import Shown, row_heads, shown_columns, slice_columns
from mclab.report.table.effects import effect_columns, effects, most_telling
from mclab.report.table.grids import fit, text_grid, width_of, wrapped
from mclab.report.table.summary import Summary, shortened, shortened_text, summarise

#: If the slices need more blocks than this, only the files show them.
MOST_BLOCKS = 4
#: The most sentences and alarms under a table.
MOST_LINES = 60
#: For each column, a sentence on how to read it. It is printed if the column is shown.
READING = {
    "test accuracy": "mean ± standard deviation (seeds), a diverged run is 0",
    "without recall": "the best predictor that looks at no key; (not above): no test over seeds tells the row from it",
    "value accuracy": "share of right values, where an answer is several",
    "values found": "share of values in any place of a freely generated answer (RULER's score)",
    "token accuracy": "share of right tokens, where accuracy is by whole answers",
    "bits": "of a byte: the mean loss over ln 2; of other tasks a scored token's",
    "95 % interval": "of that mean",
    "difference": "to the first row, paired by seed, with its 95 % interval",
    "p": "paired t test, Holm over the rows compared",
    "first mend": "what keeps a row without a verdict",
    "solved": f"seeds at {SOLVED} or more",
    "state": "size in floats, fixed + cached",
    "steps to 99 %": "median over seeds, on valid",
}
#: How to read the columns of a sequential grid, if that differs from `READING`.
SEQUENTIAL = {
    "difference": "to the first row, paired by seed, at its last look, with an interval that holds after stopping",
    "p": "paired t test, Holm over the rows compared, against the part of the 5 % error that the look may spend",
    "look": "the last one that the row took part in",
}


def terminal_table(
    plan: Plan, lookup: Lookup, width: int = 120, again: str | None = None, curve: Curve | None = None
) -> str:
    """Return question, table, verdict and alarms as text. Less important columns are left out if `width` is too small.

    `again` is the command that made the table. With it, the text ends with what to do next, in lines that can be
    pasted.
    """
    return terminal_of(summarise(plan, lookup, curve), width, again)


def terminal_of(summary: Summary, width: int = 120, again: str | None = None) -> str:
    """Return the text of `terminal_table` for a summary.

    If there are many rows, the first, the best and the worst are shown.
    """
    rows = shortened(summary)
    every = shown_columns(rows)
    columns = fit(every, width)
    left = [column.head for column in every if column not in columns]
    under = [
        *[
            wrapped(line, width)
            for line in [shortened_text(rows, summary, "all are in table.md and table.csv")]
            if line
        ],
        column_notes(columns, width, summary.crossed, sequential=summary.looks is not None),
        *[wrapped(f"hidden columns: {', '.join(left)}; see table.md", width)] * bool(left),
    ]
    if summary.unmeasured:
        under.append("no baseline without recall: these records are from before it was stored")
    words = [line for line in verdict(summary) if again is None or not line.startswith(MORE_SEEDS)]
    lines = [wrapped(line, width) for line in _most([*words, *(f"! {line}" for line in alarms(summary))])]
    lines += commands(summary, again) if again else []
    parts = [wrapped(summary.plan.question or summary.plan.name, width), text_grid(columns), "\n".join(under)]
    parts += [*_slices(rows, width), *_effects(summary, width)]
    return "\n\n".join([*parts, *["\n".join(lines)] * bool(lines)]) + "\n"


def _most(lines: Sequence[str]) -> list[str]:
    """Return at most `MOST_LINES` lines, followed by the number of lines that were left out."""
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], *[f"… and {more:,} more such lines; see table.md"] * (more > 0)]


def _slices(summary: Summary, width: int) -> list[str]:
    """Return the table of slices in blocks of at most `width` letters; each block begins with the names of the rows.

    If there are too many slices, return a line that says where to find them.
    """
    if not (columns := slice_columns(summary)):
        return []
    count = len(list(row_heads(summary)))
    heads, rest = columns[:count], columns[count:]
    blocks = [heads]
    for column in rest:
        if len(blocks[-1]) > len(heads) and width_of([*blocks[-1], column]) > width:
            blocks.append(heads)
        blocks[-1] = [*blocks[-1], column]
    if len(blocks) > MOST_BLOCKS:
        return [f"test accuracy by slice: {len(rest)} columns; see table.md, or mclab plot --kind heat or slices"]
    return ["\n\n".join(["test accuracy by slice", *map(text_grid, blocks)])]


def _effects(summary: Summary, width: int) -> list[str]:
    """Return title, table and sentences on main effects and interactions; an empty list if there are no effects."""
    if not (found := effects(summary)):
        return []
    shown = most_telling(found)
    left = [f"{len(shown)} of {len(found)} effects; all are in effects.csv"] * (len(shown) < len(found))
    lines = [*effect_sentences(found), *left, *how_to_read_effects(summary)]
    return ["effects of the axes", text_grid(effect_columns(shown)), "\n".join(wrapped(line, width) for line in lines)]


def column_notes(columns: Sequence[Shown], width: int, crossed: bool = False, sequential: bool = False) -> str:
    """Return how to read the columns that are shown, in lines of `width` letters."""
    said = READING | SEQUENTIAL if sequential else READING
    words = [f"{column.head}: {said[column.head]}" for column in columns if column.head in said]
    if crossed:
        words = [word.replace("to the first row", "to the first change with the same other values") for word in words]
    return fill("; ".join(words) + ".", width, break_on_hyphens=False)

"""Write the table of rows as LaTeX, in the form that papers use: the best means in bold, stars for differences.

It needs only booktabs. Every character is escaped, so that pdflatex works too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mclab.config.outcome import ALL
from mclab.report.stats import ALPHA, NOT_COMPARED, Spread
from mclab.report.table.columns import WITHOUT_RECALL, baselines, difference_text, row_heads, shown_columns
from mclab.report.table.latex import GAP, PAGE, SIZES, anchor, latex_escape, numeric, table_row
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import NOTHING

#: {bound: number of stars}. A row gets the stars of the smallest bound that is above its p.
STARS = {0.001: 3, 0.01: 2, ALPHA: 1}
#: A name longer than `LONGEST` letters is broken into lines; the column of names then takes the fraction `NAMES` of
#: the line width.
LONGEST, NAMES = 34, 0.32
#: The letters in a line of a caption; the number of lines that head, rules and the space around the caption take.
LINE, RULES = 70, 5
#: Further columns; they are added in this order until the width is used up.
_MORE = ("params", "state", "solved")


@dataclass(frozen=True)
class _Column:
    """A column: head, fields in LaTeX, width in letters, alignment for `tabular`, and the slice that it shows."""

    head: str
    cells: tuple[str, ...]
    width: int
    kind: str = "r"
    part: str | None = None


def tex(summary: Summary, underline: bool = False, notes: Sequence[str] = ()) -> str:
    """Return a LaTeX table: names, accuracy with stars, every slice, and further columns until the width is used up.

    The highest mean of a column is bold; with `underline` the second highest is underlined. The caption names n, the
    test and the correction. `notes` are comments above the table. Rows that do not fit on a page go into a further
    table.
    """
    size, columns, left = _fitted(summary, underline)
    caption = " ".join([_sentence(summary.plan.question or summary.plan.name), *_caption(summary, underline, left)])
    rows = list(zip(*(column.cells for column in columns), strict=True))
    foot = list(_foot(summary, columns))
    room = max(1, PAGE - len(foot) - RULES - len(caption) // LINE)
    pages = [rows[start : start + room] for start in range(0, len(rows), room)] or [[]]
    floats = [
        _float(summary.plan.name, caption, size, columns, (page, foot if place == len(pages) - 1 else []), place)
        for place, page in enumerate(pages)
    ]
    comments = [f"% {latex_escape(line)}" for line in notes]
    return "\n".join([r"% needs \usepackage{booktabs}", *comments, *floats]) + "\n"


def _float(
    name: str,
    caption: str,
    size: str,
    columns: Sequence[_Column],
    rows: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    place: int,
) -> str:
    """Return one table environment. `rows` are the rows, and the lines below them after a rule."""
    body, foot = rows
    return "\n".join([
        r"\begin{table}[tbp]",
        r"\centering",
        rf"\caption{{{latex_escape(caption)}{' (continued)' * (place > 0)}}}",
        rf"\label{{{anchor(name, place)}}}",
        rf"\{size}",
        r"\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{{''.join(column.kind for column in columns)}}}",
        r"\toprule",
        table_row([latex_escape(column.head) for column in columns]),
        r"\midrule",
        *map(table_row, body),
        *([r"\midrule"] if foot else []),
        *map(table_row, foot),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ])  # fmt: skip


def _fitted(summary: Summary, underline: bool) -> tuple[str, list[_Column], bool]:
    """Return the font size, the columns, and whether the slices were left out because they do not fit."""
    heads = list(_heads(summary))
    whole = _scored(summary, "accuracy", ALL, lambda each: each.accuracy, True, underline, _stars)
    for wide in (True, False):
        slices = [
            _scored(summary, part, part, partial(_on, part), wide, underline)
            for part in summary.slices * summary.has_slices
        ]
        for size, line in SIZES.items():
            if _width([*heads, whole, *slices]) <= line:
                return size, _filled(summary, [*heads, whole, *slices], line), False
    size, line = next(iter(SIZES.items()))
    return size, _filled(summary, [*heads, whole], line), summary.has_slices


def _on(part: str, each: Row) -> Spread:
    return each.slices.get(part, Spread())


def _filled(summary: Summary, columns: list[_Column], line: int) -> list[_Column]:
    """Return `columns` and as many further columns as fit into `line` letters."""
    for extra in _further(summary):
        if _width([*columns, extra]) <= line:
            columns = [*columns, extra]
    return columns


def _foot(summary: Summary, columns: Sequence[_Column]) -> Iterator[list[str]]:
    """Yield the lines with the accuracy of the best predictor without recall, one for each different test."""
    for label, found in baselines(summary).items():
        name = WITHOUT_RECALL + f" ({label})" * bool(label)
        known = [column.part and found.accuracy(column.part) for column in columns[1:]]
        yield [latex_escape(name), *("" if each is None or each == "" else f"{each:.3f}" for each in known)]


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _heads(summary: Summary) -> Iterator[_Column]:
    for shown in row_heads(summary):
        width = max(map(len, (shown.head, *shown.texts)))
        kind = "l" if width <= LONGEST else rf"p{{{NAMES}\linewidth}}"
        yield _Column(shown.head, tuple(map(latex_escape, shown.texts)), min(width, LONGEST), kind)


def _scored(
    summary: Summary,
    head: str,
    part: str,
    spread_of: Callable[[Row], Spread],
    wide: bool,
    underline: bool,
    mark: Callable[[Row], str] = lambda each: "",
) -> _Column:
    """Return a column of means, the best in bold; with `wide`, also the standard deviations."""
    spreads = [spread_of(each) for each in summary.rows]
    ranks = sorted({_shown(found) for found in spreads if found.mean is not None}, reverse=True)
    cells, widths = [], [len(head)]
    for each, found in zip(summary.rows, spreads, strict=True):
        if found.mean is None:
            cells.append(latex_escape(NOTHING))
            continue
        mean, rank = _shown(found), ranks.index(_shown(found)) if len(spreads) > 1 else -1
        text = rf"\textbf{{{mean}}}" if rank == 0 else rf"\underline{{{mean}}}" if rank == 1 and underline else mean
        width = rf" $\pm$ {found.std:.3f}" if wide and found.std is not None else ""
        stars = mark(each)
        cells.append(f"{text}{width}{stars}")
        widths.append(len(mean) + (8 if width else 0) + (2 if stars else 0))
    return _Column(head, tuple(cells), max(widths), part=part)


def _shown(found: Spread) -> str:
    return f"{found.mean:.3f}"


def _stars(each: Row) -> str:
    """Return stars for a row that differs from its baseline, a dagger for a row without a verdict, else ""."""
    if each.unmended or each.marks:
        return r"$^\dagger$"
    if each.look_result is not None:
        return "$^{*}$" if each.look_result.state in ("better", "worse") else ""
    found = next((number for level, number in STARS.items() if each.p is not None and each.p < level), 0)
    return f"$^{{{'*' * found}}}$" if found else ""


def _further(summary: Summary) -> Iterator[_Column]:
    """Yield further columns: number of seeds (if rows differ in it), difference and interval, those in `_MORE`."""
    if len({each.accuracy.n for each in summary.rows}) > 1:
        yield _plain("seeds", [str(each.accuracy.n) for each in summary.rows])
    if len(summary.rows) > 1:
        yield _plain("difference", [difference_text(each) for each in summary.rows])
    known = {shown.head: shown.texts for shown in shown_columns(summary)}
    yield from (_plain(head, known[head]) for head in _MORE if head in known)


def _plain(head: str, texts: Sequence[str]) -> _Column:
    return _Column(head, tuple(map(numeric, texts)), max(map(len, (head, *texts))))


def _caption(summary: Summary, underline: bool, left: bool) -> Iterator[str]:
    counts = sorted({each.accuracy.n for each in summary.rows})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    lost = "; a diverged run counts as 0" if any("diverged" in each.status for each in summary.rows) else ""
    yield f"Test accuracy, mean ± standard deviation over seeds ({n}){lost}."
    if len(summary.rows) > 1:
        yield "Bold: highest mean" + "; underlined: second." * underline + "." * (not underline)
        yield from _tested(summary)
    if failed := [each for each in summary.rows if each.not_learned]:
        yield f"Runs that did not learn, counted in: {', '.join(f'{e.in_text} {e.not_learned}' for e in failed[:6])}."
    if left:
        yield f"Accuracy on {len(summary.slices)} slices is left to the files."


def _tested(summary: Summary) -> Iterator[str]:
    """Yield sentences on the meaning of stars and daggers: the test, its correction, the number of comparisons."""
    others = sum(each.difference is not None and each.difference.kind not in NOT_COMPARED for each in summary.rows)
    base = "the first change beside it" if summary.crossed else summary.rows[0].in_text
    test = f"two-sided paired t test over seeds, Holm-corrected over {others} comparison{'s' * (others != 1)}"
    if summary.looks:
        yield f"*: told from {base}; {test}, at looks that share an error of 5 % (group-sequential)."
    elif any(each.p is not None for each in summary.rows):
        yield f"*, **, ***: differs from {base} with p < 0.05, 0.01, 0.001; {test}."
    else:
        yield "No test was made: it takes three seeds in common and differences that vary."
    if any(each.unmended or each.marks for each in summary.rows):
        why = sorted({mark for each in summary.rows for mark in each.marks})
        yield f"†: no verdict ({', '.join(why) or 'the baseline must be mended first'})."


def _sentence(text: str) -> str:
    return text if text[-1:] in ".?!" else f"{text}."

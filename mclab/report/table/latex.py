"""Tables of text as LaTeX: booktabs, every character escaped, as many blocks and pages as they take."""

import re
from collections.abc import Iterator, Sequence

from mclab.report.table.columns import Shown
from mclab.report.table.letters import escape

#: Sizes of type, the larger first, with the letters that a line of an article holds; what a column's gap takes of them.
SIZES = {"footnotesize": 82, "scriptsize": 88}
GAP = 2
#: Lines that a page holds; what is beyond them goes into a table of its own.
PAGE, NOTE = 52, 110

#: A sign before a number.
_MINUS = re.compile(r"(?<![\w.\-])([-+])(?=\d)")


def typeset(caption: str, name: str, tables: Sequence[Sequence[Shown]], notes: Sequence[str], heads: int = 1) -> str:
    """Tables with a caption and how to read them; the first `heads` columns name the rows.

    What does not fit side by side stands below, with the rows' names again, and what does not fit on a page in a
    further table.
    """
    sized = (_sized(tables, size, heads) for size in SIZES)
    size, blocks = min(sized, key=lambda found: len(found[1]))
    words = [escape(line) for line in notes]
    room = PAGE - sum(len(line) // NOTE + 1 for line in words)
    pages: list[list[str]] = [[]]
    for block in blocks:
        lines = len(block[0].texts) + 3
        if pages[-1] and room < lines:
            pages.append([])
            room = PAGE
        pages[-1].append(_tabular(block))
        room -= lines
    floats = [_float(caption, name, size, page, place, words) for place, page in enumerate(pages)]
    return "\n".join([r"% needs \usepackage{booktabs}", *floats]) + "\n"


def _float(caption: str, name: str, size: str, tables: Sequence[str], place: int, words: Sequence[str]) -> str:
    """One table environment; the notes stand below the first one."""
    under = [r"\par\medskip", r"\begin{minipage}{\linewidth}\footnotesize", *words, r"\end{minipage}"]
    return "\n".join(
        [
            r"\begin{table}[tbp]",
            r"\centering",
            rf"\caption{{{escape(caption)}{' (continued)' * (place > 0)}}}",
            rf"\label{{{anchor(name, place)}}}",
            rf"\{size}",
            r"\setlength{\tabcolsep}{3pt}",
            "\n\\par\\medskip\n".join(tables),
            *(under if place == 0 else []),
            r"\end{table}",
        ]
    )


def anchor(name: str, place: int = 0) -> str:
    """What a table is referred to by; `place` counts those that go on."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "table"
    return f"tab:{plain}{f'-{place + 1}' if place else ''}"


def _sized(tables: Sequence[Sequence[Shown]], size: str, heads: int) -> tuple[str, list[list[Shown]]]:
    """A size and the blocks of columns that it comes to."""
    return size, [block for columns in tables for block in _blocks(columns[:heads], columns[heads:], SIZES[size])]


def _blocks(heads: Sequence[Shown], columns: Sequence[Shown], line: int) -> Iterator[list[Shown]]:
    """As many columns side by side as a line holds, at least one, each time behind the rows' names."""
    block: list[Shown] = []
    for column in columns:
        if block and _width([*heads, *block, column]) > line:
            yield [*heads, *block]
            block = []
        block.append(column)
    yield [*heads, *block]


def _width(columns: Sequence[Shown]) -> int:
    return sum(max(map(len, (column.head, *column.texts))) + GAP for column in columns)


def _tabular(columns: Sequence[Shown]) -> str:
    sides = "".join("r" if column.right else "l" for column in columns)
    head, *rows = zip(*([column.head, *column.texts] for column in columns), strict=True)
    return "\n".join([
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        table_row([escape(text) for text in head]),
        r"\midrule",
        *(table_row([_cell(column, text) for column, text in zip(columns, row, strict=True)]) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ])  # fmt: skip


def _cell(column: Shown, text: str) -> str:
    """Escaped; in a column of numbers a sign is set as one, not as a hyphen."""
    return numeric(text) if column.right else escape(text)


def numeric(text: str) -> str:
    """Escaped, a sign set as one."""
    return _MINUS.sub(r"$\1$", escape(text))


def table_row(cells: Sequence[str]) -> str:
    """A row; behind the row before it, an opening bracket or a star would be read as an option of its end."""
    line = " & ".join(cells)
    return ("{}" if line[:1] in ("[", "*") else "") + line + r" \\"

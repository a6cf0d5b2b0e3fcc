"""A table of columns as plain text, no wider than asked, and as markdown."""

import re
from collections.abc import Sequence
from textwrap import fill

from mclab.printable import printable
from mclab.report.table.columns import Shown
from mclab.report.text import GAP, cut, cut_middle, joined_columns, padded

#: What would end a cell, start emphasis, code or a formula, or open a tag. Inside a word `_` starts nothing.
_SPECIAL = re.compile(r"[\\|*`$~]|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: Names and values longer than this are cut; the files hold all of them.
LONGEST = 28


def fit(columns: Sequence[Shown], width: int) -> list[Shown]:
    """The columns that are always shown, and of the others, least expendable first, those that still fit."""
    kept = {place for place, column in enumerate(columns) if not column.expendable}
    for place in sorted(set(range(len(columns))) - kept, key=lambda place: columns[place].expendable):
        if width_of([columns[p] for p in sorted(kept | {place})]) <= width:
            kept.add(place)
    return [columns[place] for place in sorted(kept)]


def text_grid(columns: Sequence[Shown]) -> str:
    """Head, rule and rows, each column as wide as its widest text."""
    body = []
    for column in columns:
        top, *rest = padded(_texts(column), column.right)
        body.append([top, "-" * len(top), *rest])
    return joined_columns(body)


def width_of(columns: Sequence[Shown]) -> int:
    """Letters of a line of the table."""
    return sum(max(map(len, _texts(column))) for column in columns) + len(GAP) * (len(columns) - 1)


def _texts(column: Shown) -> list[str]:
    """Head and texts, each on one line; those that lean left are names and may be cut."""
    texts = [" ".join(printable(text).split()) for text in (column.head, *column.texts)]
    return texts if column.right else [cut(texts[0], LONGEST), *cut_apart(texts[1:])]


def cut_apart(texts: Sequence[str]) -> list[str]:
    """Texts cut to `LONGEST`, at the end or else in the middle; longer where two would come to the same text."""
    for length in range(LONGEST, max(map(len, texts), default=0)):
        for shorten in (cut, cut_middle):
            short = [shorten(text, length) for text in texts]
            if len(set(short)) == len(set(texts)):
                return short
    return list(texts)


def wrapped(text: str, width: int) -> str:
    """A sentence in lines of `width` letters, those after the first set in."""
    return fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_escape(text: str) -> str:
    """Text that markdown shows as it is, on one line."""
    return " ".join(_SPECIAL.sub(lambda found: "\\" + found[0], printable(text)).split())


def markdown_grid(columns: Sequence[Shown]) -> str:
    """A pipe table, padded so that it can be read as text too."""
    made = []
    for column in columns:
        texts = [markdown_escape(text) for text in (column.head, *column.texts)]
        head, *body = padded(texts, column.right, least=3)
        rule = "-" * (len(head) - 1) + ":" if column.right else "-" * len(head)
        made.append([head, rule, *body])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*made, strict=True))

"""Write columns as a table in plain text, limited to a width, and in markdown."""

import re
from collections.abc import Sequence
from textwrap import fill

from mclab.printable import printable
from mclab.report.table.columns import Shown
from mclab.report.text import GAP, cut, cut_middle, joined_columns, padded

#: Characters that in markdown end a field of a table, start emphasis, code or a formula, or open a tag. `_` within a
#: word does not.
_SPECIAL = re.compile(r"[\\|*`$~]|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: The most letters of a name or value in a table. Longer ones are cut; the files hold them in full.
LONGEST = 28


def fit(columns: Sequence[Shown], width: int) -> list[Shown]:
    """Return the columns that fit `width`: all with `expendable` 0, then further ones as far as possible.

    Columns with a small `expendable` are preferred.
    """
    kept = {place for place, column in enumerate(columns) if not column.expendable}
    for place in sorted(set(range(len(columns))) - kept, key=lambda place: columns[place].expendable):
        if width_of([columns[p] for p in sorted(kept | {place})]) <= width:
            kept.add(place)
    return [columns[place] for place in sorted(kept)]


def text_grid(columns: Sequence[Shown]) -> str:
    """Return head, rule and rows as lines. Each column is as wide as its widest text."""
    body = []
    for column in columns:
        top, *rest = padded(_texts(column), column.right)
        body.append([top, "-" * len(top), *rest])
    return joined_columns(body)


def width_of(columns: Sequence[Shown]) -> int:
    """Return the number of letters in a line of the table."""
    return sum(max(map(len, _texts(column))) for column in columns) + len(GAP) * (len(columns) - 1)


def _texts(column: Shown) -> list[str]:
    """Return the head and the texts of a column, each on one line. Names, which are aligned left, may be cut."""
    texts = [" ".join(printable(text).split()) for text in (column.head, *column.texts)]
    return texts if column.right else [cut(texts[0], LONGEST), *cut_apart(texts[1:])]


def cut_apart(texts: Sequence[str]) -> list[str]:
    """Return the texts cut to `LONGEST` letters at the end; if two texts then coincide, all are cut in the middle.

    If two coincide in both ways, the limit is raised until all different texts stay different.
    """
    for length in range(LONGEST, max(map(len, texts), default=0)):
        for shorten in (cut, cut_middle):
            short = [shorten(text, length) for text in texts]
            if len(set(short)) == len(set(texts)):
                return short
    return list(texts)


def wrapped(text: str, width: int) -> str:
    """Wrap a sentence to lines of `width` letters; lines after the first are indented."""
    return fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown_escape(text: str) -> str:
    """Escape the text so that markdown shows it unchanged, on one line."""
    return " ".join(_SPECIAL.sub(lambda found: "\\" + found[0], printable(text)).split())


def markdown_grid(columns: Sequence[Shown]) -> str:
    """Return a pipe table, padded so that it is also readable as plain text."""
    made = []
    for column in columns:
        texts = [markdown_escape(text) for text in (column.head, *column.texts)]
        head, *body = padded(texts, column.right, least=3)
        rule = "-" * (len(head) - 1) + ":" if column.right else "-" * len(head)
        made.append([head, rule, *body])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*made, strict=True))

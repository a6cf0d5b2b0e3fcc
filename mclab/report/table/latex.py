"""Write LaTeX: escaped text in ASCII, and tables of any columns. They need booktabs and no other package."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from mclab.printable import printable
from mclab.report.table.columns import Shown

#: LaTeX for characters that have a meaning in LaTeX or that its default font encoding lacks.
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "\u00a0": " ",
}
#: LaTeX for signs that need math mode.
MATHS = {
    "−": "-", "±": r"\pm", "×": r"\times", "÷": r"\div", "·": r"\cdot", "°": r"{}^\circ", "∞": r"\infty",
    "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∝": r"\propto", "√": r"\surd", "∂": r"\partial",
    "→": r"\to", "←": r"\leftarrow", "↑": r"\uparrow", "↓": r"\downarrow", "⇒": r"\Rightarrow", "∈": r"\in",
    "Σ": r"\Sigma", "∑": r"\sum", "∏": r"\prod", "⊙": r"\odot", "⊕": r"\oplus", "⟨": r"\langle", "⟩": r"\rangle",
    "²": "{}^2", "³": "{}^3", "¹": "{}^1", "⁰": "{}^0", "ᵀ": "{}^T", "½": r"\frac12", "¼": r"\frac14", "μ": r"\mu",
    "µ": r"\mu", "✓": r"\surd", "†": r"\dagger",
}  # fmt: skip
#: Names of Greek letters whose capitals look like Latin letters, so that LaTeX has no macros for them.
_ALIKE = frozenset(
    ("ALPHA", "BETA", "EPSILON", "ZETA", "ETA", "IOTA", "KAPPA", "MU", "NU", "OMICRON", "RHO", "TAU", "CHI")
)
_LETTERS = _ALIKE | {"GAMMA", "DELTA", "THETA", "LAMBDA", "XI", "PI", "SIGMA", "UPSILON", "PHI", "PSI", "OMEGA"}
#: LaTeX's accents, by the combining mark of Unicode.
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0328": "k", "\u0331": "b",
}  # fmt: skip
#: The position between two hyphens, which LaTeX would otherwise join to a dash.
_JOINED = re.compile(r"(?<=-)(?=-)")
#: Font sizes, the larger first, with the number of letters in a line of an article. Below: the letters between two
#: columns.
SIZES = {"footnotesize": 82, "scriptsize": 88}
GAP = 2
#: The number of lines of a page (further rows go into another table), and of letters in a line of the notes.
PAGE, NOTE = 52, 110

#: A sign before a number.
_MINUS = re.compile(r"(?<![\w.\-])([-+])(?=\d)")


def latex_escape(text: str) -> str:
    """Escape the text so that LaTeX shows it unchanged, on one line, in ASCII.

    A character without a macro is replaced by its code point, e.g. `[U+4E2D]`.
    """
    parts = _JOINED.split(" ".join(printable(text).split()))
    return "{}".join("".join(map(_sign, part)) for part in parts)


def _sign(sign: str) -> str:
    if sign in SPECIAL:
        return SPECIAL[sign]
    if " " <= sign <= "~":
        return sign
    if maths := MATHS.get(sign) or _greek(sign):
        return f"${maths}$"
    return _accented(sign) or ("" if unicodedata.category(sign)[0] == "C" else f"[U+{ord(sign):04X}]")


def _greek(sign: str) -> str | None:
    r"""Return the macro of a Greek letter, e.g. `\gamma` for γ, by its name in Unicode; `None` for other characters."""
    found = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (FINAL )?(\w+)", unicodedata.name(sign, ""))
    if found is None:
        return None
    size, name = found[1], {"LAMDA": "LAMBDA"}.get(found[3], found[3])
    if found[2]:
        return r"\varsigma"
    if name not in _LETTERS:
        return None
    if name == "OMICRON" or (size == "CAPITAL" and name in _ALIKE):
        latin = {"ETA": "H", "NU": "N", "RHO": "P", "CHI": "X"}.get(name, name[0])
        return rf"\mathrm{{{latin}}}" if size == "CAPITAL" else "o"
    return rf"\{name.lower() if size == 'SMALL' else name.capitalize()}"


def _accented(sign: str) -> str | None:
    base, marks = (apart := unicodedata.normalize("NFD", sign))[0], apart[1:]
    if marks not in ACCENTS or not (base.isascii() and base.isalpha()):
        return None
    return rf"\{ACCENTS[marks]}{{{base}}}"


def typeset(caption: str, name: str, tables: Sequence[Sequence[Shown]], notes: Sequence[str], heads: int = 1) -> str:
    """Return `tables` as LaTeX with a caption and with `notes` on how to read them.

    The first `heads` columns name the rows. Columns that do not fit into a line are placed below, with the names of the
    rows again. Blocks that do not fit on a page go into a further table.
    """
    sized = (_sized(tables, size, heads) for size in SIZES)
    size, blocks = min(sized, key=lambda found: len(found[1]))
    words = [latex_escape(line) for line in notes]
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
    """Return one table environment. `place` is its number from 0; the first one has the notes below it."""
    under = [r"\par\medskip", r"\begin{minipage}{\linewidth}\footnotesize", *words, r"\end{minipage}"]
    return "\n".join(
        [
            r"\begin{table}[tbp]",
            r"\centering",
            rf"\caption{{{latex_escape(caption)}{' (continued)' * (place > 0)}}}",
            rf"\label{{{anchor(name, place)}}}",
            rf"\{size}",
            r"\setlength{\tabcolsep}{3pt}",
            "\n\\par\\medskip\n".join(tables),
            *(under if place == 0 else []),
            r"\end{table}",
        ]
    )


def anchor(name: str, place: int = 0) -> str:
    """Return the LaTeX label of a table; `place` is 0 for the table itself and 1, 2, ... for its continuations."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "table"
    return f"tab:{plain}{f'-{place + 1}' if place else ''}"


def _sized(tables: Sequence[Sequence[Shown]], size: str, heads: int) -> tuple[str, list[list[Shown]]]:
    """Return the font size `size` and the blocks of columns into which the tables are split at this size."""
    return size, [block for columns in tables for block in _blocks(columns[:heads], columns[heads:], SIZES[size])]


def _blocks(heads: Sequence[Shown], columns: Sequence[Shown], line: int) -> Iterator[list[Shown]]:
    """Yield blocks of columns that fit into a line, each with `heads` and at least one column after them."""
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
        table_row([latex_escape(text) for text in head]),
        r"\midrule",
        *(table_row([_cell(column, text) for column, text in zip(columns, row, strict=True)]) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ])  # fmt: skip


def _cell(column: Shown, text: str) -> str:
    """Return the escaped text of a field; in a column of numbers, `-` is a minus sign and not a hyphen."""
    return numeric(text) if column.right else latex_escape(text)


def numeric(text: str) -> str:
    """Return the escaped text with `+` and `-` before numbers in math mode."""
    return _MINUS.sub(r"$\1$", latex_escape(text))


def table_row(cells: Sequence[str]) -> str:
    """Return a row of a LaTeX table.

    A leading `[` or `*` gets `{}` before it, since LaTeX would read it as an option of the preceding line end.
    """
    line = " & ".join(cells)
    return ("{}" if line[:1] in ("[", "*") else "") + line + r" \\"

"""Text for LaTeX: every character escaped or named, in ASCII, so that pdflatex sets it whatever it is."""

import re
import unicodedata

from mclab.printable import printable

#: What LaTeX reads as its own, and signs that its default encoding lacks.
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
#: Signs that are set in mathematics.
MATHS = {
    "−": "-", "±": r"\pm", "×": r"\times", "÷": r"\div", "·": r"\cdot", "°": r"{}^\circ", "∞": r"\infty",
    "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∝": r"\propto", "√": r"\surd", "∂": r"\partial",
    "→": r"\to", "←": r"\leftarrow", "↑": r"\uparrow", "↓": r"\downarrow", "⇒": r"\Rightarrow", "∈": r"\in",
    "Σ": r"\Sigma", "∑": r"\sum", "∏": r"\prod", "⊙": r"\odot", "⊕": r"\oplus", "⟨": r"\langle", "⟩": r"\rangle",
    "²": "{}^2", "³": "{}^3", "¹": "{}^1", "⁰": "{}^0", "ᵀ": "{}^T", "½": r"\frac12", "¼": r"\frac14", "μ": r"\mu",
    "µ": r"\mu", "✓": r"\surd", "†": r"\dagger",
}  # fmt: skip
#: The Greek letters; the capitals of the first look like Latin ones, and LaTeX has no names for them.
_ALIKE = frozenset(
    ("ALPHA", "BETA", "EPSILON", "ZETA", "ETA", "IOTA", "KAPPA", "MU", "NU", "OMICRON", "RHO", "TAU", "CHI")
)
_LETTERS = _ALIKE | {"GAMMA", "DELTA", "THETA", "LAMBDA", "XI", "PI", "SIGMA", "UPSILON", "PHI", "PSI", "OMEGA"}
#: Accents by the combining mark that Unicode takes a letter apart into.
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0328": "k", "\u0331": "b",
}  # fmt: skip
#: Pairs that LaTeX would join: two hyphens to a dash, a question and a backquote to a Spanish mark.
_JOINED = re.compile(r"(?<=-)(?=-)")


def escape(text: str) -> str:
    """Text that LaTeX sets as it is, on one line, in ASCII. What no macro stands for is named: `[U+4E2D]`."""
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
    """`\\gamma` for γ, after the letter's name in Unicode."""
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

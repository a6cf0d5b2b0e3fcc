"""Signs beyond ASCII, and what stands for them where a terminal or a pipe has no room for them in its encoding."""

from typing import NamedTuple

#: Signs of tables and sentences.
PLAIN = {"±": "+-", "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": ".", "✓": "ok", "✗": "x"}


class Marks(NamedTuple):
    """The characters of a strip, of a curve and of a verdict: they are laid out, so they are chosen beforehand."""

    levels: str
    """From little to much; a weight of 1 is the last."""
    zero: str
    """A segment that the query sees and does not read."""
    right: str
    wrong: str


BLOCKS = Marks("▁▂▃▄▅▆▇█", "·", " ✓", " ✗")
DIGITS = Marks("0123456789", ".", " ok", " x")


def marks_for(encoding: str | None) -> Marks:
    """Blocks where a stream of this encoding can show them, else digits: 0 is below 0.1 and 9 from 0.9."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BLOCKS


def level(share: float, marks: Marks) -> str:
    """The character for a value from 0 to 1; beyond them the first or the last."""
    return marks.levels[min(max(0, int(share * len(marks.levels))), len(marks.levels) - 1)]


def in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    """A handler for `codecs.register_error`: what an encoding lacks in plain signs, or else as an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign) or _escape(sign) for sign in lacking), error.end


def _escape(sign: str) -> str:
    return sign.encode("ascii", "backslashreplace").decode()

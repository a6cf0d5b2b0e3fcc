"""Draw a gate's weights and curves with characters, and replace characters that a terminal lacks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: Replacements for signs in tables and sentences.
PLAIN = {"±": "+-", "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": ".", "✓": "ok", "✗": "x"}


class Characters(NamedTuple):
    """The characters for weights, curves and right or wrong answers. They are aligned, so no replacement may follow."""

    levels: str
    """Levels in ascending order; the last is for a weight of 1."""
    zero: str
    """For a segment that the query sees, with weight 0."""
    right: str
    wrong: str


BLOCKS = Characters("▁▂▃▄▅▆▇█", "·", " ✓", " ✗")
DIGITS = Characters("0123456789", ".", " ok", " x")


def marks_for(encoding: str | None) -> Characters:
    """Return `BLOCKS` where the encoding has these characters, else `DIGITS`: 0 is below 0.1, 9 is at least 0.9."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BLOCKS


def level(share: float, marks: Characters) -> str:
    """Return the character for a value from 0 to 1; smaller values have the first, larger ones the last character."""
    return marks.levels[min(max(0, int(share * len(marks.levels))), len(marks.levels) - 1)]


def in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks by those in `PLAIN`, or else by escapes.

    It is a handler for `codecs.register_error`.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign) or _escape(sign) for sign in lacking), error.end


def _escape(sign: str) -> str:
    return sign.encode("ascii", "backslashreplace").decode()


class Strip(NamedTuple):
    """The weights with which one head of one layer reads the memories, for one query."""

    weights: Sequence[float]
    """A weight for each memory that any query sees, the oldest first; 0 for memories that this query does not see."""
    visible: int
    """The number of memories that the query sees, the current one included. They are the first ones."""
    held: frozenset[int]
    """The memories that hold what the query needs; empty where that is not known."""

    @property
    def share(self) -> float:
        """The sum of absolute weights on the memories in `held`, divided by the sum of all absolute weights."""
        whole = sum(abs(weight) for weight in self.weights)
        return sum(abs(self.weights[place]) for place in self.held) / whole if whole else 0.0

    @property
    def even(self) -> float:
        """The value of `share` if all visible memories had the same weight."""
        return len(self.held) / self.visible


#: Up to this many segments, each cell has room for brackets; more are written without gaps, with carets below.
ROOMY = 48


def cells(strip: Strip, marks: Characters) -> list[str]:
    """Return the weights as a line, e.g. ` ▁ ▁[█]▁ `: a cell for each visible segment, blanks for the others.

    For more than 48 segments there are two lines: the cells, and carets below the segments in `held`.
    """
    shown = [_cell(weight, marks) if place < strip.visible else " " for place, weight in enumerate(strip.weights)]
    if len(shown) > ROOMY:
        return ["".join(shown), "".join("^" if place in strip.held else " " for place in range(len(shown)))]
    edges = [_edge(place, strip.held) for place in range(len(shown) + 1)]
    return ["".join(edge + cell for edge, cell in zip(edges, [*shown, ""], strict=True))]


def _cell(weight: float, marks: Characters) -> str:
    """Return the character for the absolute weight. Gates without an activation can exceed 1, which is shown as 1."""
    return level(abs(weight), marks) if weight else marks.zero


def _edge(place: int, held: Collection[int]) -> str:
    """Return the sign before cell `place`: a bracket around held cells, a bar between two held neighbours."""
    if place - 1 in held:
        return "|" if place in held else "]"
    return "[" if place in held else " "

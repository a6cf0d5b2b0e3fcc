"""What is drawn with characters: a gate's weights, a curve; and what stands for characters that a terminal lacks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: Signs of tables and sentences.
PLAIN = {"±": "+-", "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": ".", "✓": "ok", "✗": "x"}


class Characters(NamedTuple):
    """The characters of a strip, of a curve and of a verdict: they are laid out, so they are chosen beforehand."""

    levels: str
    """From little to much; a weight of 1 is the last."""
    zero: str
    """A segment that the query sees and does not read."""
    right: str
    wrong: str


BLOCKS = Characters("▁▂▃▄▅▆▇█", "·", " ✓", " ✗")
DIGITS = Characters("0123456789", ".", " ok", " x")


def marks_for(encoding: str | None) -> Characters:
    """Blocks where a stream of this encoding can show them, else digits: 0 is below 0.1 and 9 from 0.9."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BLOCKS


def level(share: float, marks: Characters) -> str:
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


class Strip(NamedTuple):
    """What one head of one layer reads for one query."""

    weights: Sequence[float]
    """One for each memory that a query may see, the oldest first; zero behind those that it sees."""
    visible: int
    """Memories that the query sees, its online one included: the first so many."""
    held: frozenset[int]
    """Memories that hold what the query needs; empty where nobody knows."""

    @property
    def share(self) -> float:
        """The part of all weight that is on the marked segments, whichever sign weights have."""
        whole = sum(abs(weight) for weight in self.weights)
        return sum(abs(self.weights[place]) for place in self.held) / whole if whole else 0.0

    @property
    def even(self) -> float:
        """That part if every visible segment weighed the same."""
        return len(self.held) / self.visible


#: Segments that still have a cell with room for brackets; more are written without gaps, with carets below.
ROOMY = 48


def cells(strip: Strip, marks: Characters) -> list[str]:
    """A cell for each visible segment, blanks for the others, ` ▁ ▁[█]▁ `.

    Where there are more than 48 segments, two lines: the cells, and carets below the marked ones.
    """
    shown = [_cell(weight, marks) if place < strip.visible else " " for place, weight in enumerate(strip.weights)]
    if len(shown) > ROOMY:
        return ["".join(shown), "".join("^" if place in strip.held else " " for place in range(len(shown)))]
    edges = [_edge(place, strip.held) for place in range(len(shown) + 1)]
    return ["".join(edge + cell for edge, cell in zip(edges, [*shown, ""], strict=True))]


def _cell(weight: float, marks: Characters) -> str:
    """By size; of gates without an activation weights may be below 0, or above 1 and then look like 1."""
    return level(abs(weight), marks) if weight else marks.zero


def _edge(place: int, held: Collection[int]) -> str:
    """The sign before cell `place`: neighbours that are both held share a bar."""
    if place - 1 in held:
        return "|" if place in held else "]"
    return "[" if place in held else " "

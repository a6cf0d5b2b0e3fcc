"""Draw a gate's weights and curves with characters, and replace characters that a terminal lacks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: Replacements for signs in tables and sentences.
PLAIN = {"±": "+-", "×": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": ".", "✓": "ok", "✗": "x"}


class Characters(NamedTuple):
    """The characters that show weights, curves, and right or wrong answers.

    They are aligned in columns, so none of them may be replaced by a longer text (see `in_plain_signs`).
    """

    levels: str
    """The characters for increasing weights; the last one is for a weight of 1."""
    zero: str
    """The character for a segment that the query sees but reads with weight 0."""
    right: str
    wrong: str


BLOCKS = Characters("▁▂▃▄▅▆▇█", "·", " ✓", " ✗")
DIGITS = Characters("0123456789", ".", " ok", " x")


def marks_for(encoding: str | None) -> Characters:
    """Return `BLOCKS` if the encoding has these characters, else `DIGITS`: 0 means below 0.1, 9 at least 0.9."""
    try:
        "".join(BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BLOCKS


def level(share: float, marks: Characters) -> str:
    """Return the character for `share`, a value from 0 to 1; values outside are clipped."""
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
    """The weights with which one head of one layer reads the memories for one query."""

    weights: Sequence[float]
    """One weight for each memory that some query sees, the oldest first.

    The weight is 0 for memories that this query does not see.
    """
    visible: int
    """The number of memories that the query sees, the online memory included; these are the first ones in `weights`."""
    held: frozenset[int]
    """The places in `weights` of the memories that hold what the query needs; empty if that is not known."""

    @property
    def share(self) -> float:
        """The fraction of the absolute weights that is on the memories in `held`."""
        whole = sum(abs(weight) for weight in self.weights)
        return sum(abs(self.weights[place]) for place in self.held) / whole if whole else 0.0

    @property
    def even(self) -> float:
        """The value that `share` would have if all visible memories had the same weight."""
        return len(self.held) / self.visible


#: Brackets are drawn for up to this many segments. For more, there are no gaps, and carets are drawn below.
ROOMY = 48


def cells(strip: Strip, marks: Characters) -> list[str]:
    """Return the weights as a line such as ` ▁ ▁[█]▁ `: a character for each visible segment, blanks for the others.

    For more than 48 segments, return two lines: the characters, and below them carets for the segments in `held`.
    """
    shown = [_cell(weight, marks) if place < strip.visible else " " for place, weight in enumerate(strip.weights)]
    if len(shown) > ROOMY:
        return ["".join(shown), "".join("^" if place in strip.held else " " for place in range(len(shown)))]
    edges = [_edge(place, strip.held) for place in range(len(shown) + 1)]
    return ["".join(edge + cell for edge, cell in zip(edges, [*shown, ""], strict=True))]


def _cell(weight: float, marks: Characters) -> str:
    """Return the character for the absolute value of `weight`.

    Gates without an activation can give values above 1; they are shown as 1.
    """
    return level(abs(weight), marks) if weight else marks.zero


def _edge(place: int, held: Collection[int]) -> str:
    """Return the sign before segment `place`: brackets around the segments in `held`, a bar between two of them."""
    if place - 1 in held:
        return "|" if place in held else "]"
    return "[" if place in held else " "

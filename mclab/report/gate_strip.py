"""A gate's weights as a strip of text: one cell a segment, brackets around those that hold what the query needs."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mclab.report.characters import Marks, level


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
        """The part of all weight that lies on the marked segments, whichever sign weights have."""
        whole = sum(abs(weight) for weight in self.weights)
        return sum(abs(self.weights[place]) for place in self.held) / whole if whole else 0.0

    @property
    def even(self) -> float:
        """That part if every visible segment weighed the same."""
        return len(self.held) / self.visible


#: Segments that still have a cell with room for brackets; more stand side by side, with carets below.
ROOMY = 48


def cells(strip: Strip, marks: Marks) -> list[str]:
    """A cell for each visible segment, blanks for the others, ` ▁ ▁[█]▁ `.

    Where there are more than 48 segments, two lines: the cells, and carets below the marked ones.
    """
    shown = [_cell(weight, marks) if place < strip.visible else " " for place, weight in enumerate(strip.weights)]
    if len(shown) > ROOMY:
        return ["".join(shown), "".join("^" if place in strip.held else " " for place in range(len(shown)))]
    edges = [_edge(place, strip.held) for place in range(len(shown) + 1)]
    return ["".join(edge + cell for edge, cell in zip(edges, [*shown, ""], strict=True))]


def _cell(weight: float, marks: Marks) -> str:
    """By size; of gates without an activation weights may be below 0, or above 1 and then look like 1."""
    return level(abs(weight), marks) if weight else marks.zero


def _edge(place: int, held: Collection[int]) -> str:
    """What stands before cell `place`: neighbours that are both held share a bar."""
    if place - 1 in held:
        return "|" if place in held else "]"
    return "[" if place in held else " "

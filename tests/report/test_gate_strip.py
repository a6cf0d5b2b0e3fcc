"""A gate's weights as text."""

import pytest

from mclab.report.characters import BLOCKS, DIGITS
from mclab.report.gate_strip import Strip, cells


def strip(weights, visible, *held):
    return Strip(weights, visible, frozenset(held))


@pytest.mark.parametrize(
    ("given", "blocks", "digits"),
    [
        (strip([0.02, 0.95, 0.03, 0.0], 3, 1), " ▁[█]▁   ", " 0[9]0   "),
        (strip([0.5, 0.5], 2, 0), "[▅]▅ ", "[5]5 "),
        (strip([0.5, 0.0, 0.5], 3, 2), " ▅ ·[▅]", " 5 .[5]"),
        (strip([0.3, 0.3, 0.4], 3, 0, 1), "[▃|▃]▄ ", "[3|3]4 "),
        (strip([1.0, 1.0], 2), " █ █ ", " 9 9 "),
        (strip([1.0000001], 1, 0), "[█]", "[9]"),
        (strip([0.124, 0.876], 2), " ▁ █ ", " 1 8 "),
    ],
)
def test_cells_by_hand(given, blocks, digits):
    assert cells(given, BLOCKS) == [blocks]
    assert cells(given, DIGITS) == [digits]


def test_more_segments_than_fit_with_brackets_have_carets_below():
    assert cells(strip([1 / 50] * 50, 49, 3, 48), DIGITS) == ["0" * 49 + " ", "   ^" + " " * 44 + "^ "]


def test_shares():
    seen = strip([0.1, 0.3, 0.1, 0.0], 3, 1)
    assert seen.share == pytest.approx(0.6)  # of what is read: ssc need not share out 1
    assert seen.even == 1 / 3
    assert strip([1.0, 1.0, 1.0], 3, 0, 2).share == pytest.approx(2 / 3)

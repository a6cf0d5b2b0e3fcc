"""What stands for a sign that an encoding lacks, and a gate's weights as text."""

import codecs

import pytest

from mclab.report.characters import BLOCKS, DIGITS, PLAIN, Strip, cells, in_plain_signs, level, marks_for


def test_marks_that_a_stream_can_show():
    assert marks_for("utf-8") is BLOCKS
    assert all(marks_for(encoding) is DIGITS for encoding in ("ascii", "latin-1", None, "no-such-encoding"))
    "".join(DIGITS).encode("ascii")


@pytest.mark.parametrize(("share", "block", "digit"), [(-1, "▁", "0"), (0.5, "▅", "5"), (1, "█", "9"), (7, "█", "9")])
def test_a_level_stays_within_its_characters(share, block, digit):
    assert (level(share, BLOCKS), level(share, DIGITS)) == (block, digit)


@pytest.mark.parametrize(
    ("text", "encoding", "bytes_"),
    [
        ("0.5 ± 0.1", "ascii", b"0.5 +- 0.1"),
        ("0.5 ± 0.1 …", "latin-1", b"0.5 \xb1 0.1 ..."),
        ("+4 −2, × – ✓", "ascii", b"+4 -2, x - ok"),
        ("é 語 😀", "ascii", rb"\xe9 \u8a9e \U0001f600"),
        ("\udc80", "utf-8", rb"\udc80"),
    ],
)
def test_only_what_an_encoding_lacks_is_replaced(text, encoding, bytes_):
    codecs.register_error("plain signs", in_plain_signs)
    assert text.encode(encoding, "plain signs") == bytes_


def test_what_stands_for_a_sign_can_be_shown_anywhere():
    assert all(plain.isascii() for plain in PLAIN.values())


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

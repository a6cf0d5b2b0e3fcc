"""Columns of text."""

from mclab.report.align import aligned, cut, padded, reason


def test_columns_are_padded_to_the_widest_text_and_lines_end_with_their_last_letter():
    assert aligned([("cell", "params", "why"), ("gate=none", "12", ""), ("a", "3,456", "x")], right=[1]) == (
        "cell       params  why\n"
        "gate=none      12\n"
        "a           3,456  x"
    )  # fmt: skip
    assert padded(["a", "bcd"]) == ["a  ", "bcd"]
    assert padded(["a"], right=True, least=3) == ["  a"]
    assert aligned([]) == ""


def test_a_cut_text_is_as_long_as_asked_and_says_that_it_is_cut():
    assert [cut("segment", longest) for longest in (6, 7, 8)] == ["segme…", "segment", "segment"]


def test_a_reason_is_the_last_line_of_an_error_and_says_where_it_is_cut() -> None:
    assert (reason(None), reason(" \n")) == ("", "")
    assert reason("RuntimeError: bad\nout of luck.") == " (out of luck)"
    assert reason("x" * 160) == f" ({'x' * 160})"
    assert reason("x" * 161) == f" ({'x' * 159}…)"

"""Column names, values and labels, and columns of text."""

import pytest

from mclab.report.text import (
    aligned,
    column_names,
    cut,
    full_label,
    is_number,
    label,
    natural,
    padded,
    reason,
    seeds_text,
    value_text,
)


def test_last_word_alone():
    assert column_names(["model.mixer.gate", "task.length"]) == {"model.mixer.gate": "gate", "task.length": "length"}


def test_full_path_where_two_clash():
    got = column_names(["model.mixer.name", "task.name", "model.dim"])
    assert got == {"model.mixer.name": "model.mixer.name", "task.name": "task.name", "model.dim": "dim"}


def test_full_path_where_a_fixed_column_has_the_word():
    assert column_names(["model.mixer.name"]) == {"model.mixer.name": "model.mixer.name"}
    assert column_names(["train.steps"]) == {"train.steps": "steps"}


def test_the_same_path_twice_is_no_clash():
    assert column_names(["train.lr", "train.lr"]) == {"train.lr": "lr"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (8, "8"),
        (1e-3, "0.001"),
        (3.0, "3"),
        (0.1234567, "0.1234567"),
        ("none", "none"),
        ((4, 8, 16), "4,8,16"),
        ([4], "4"),
        ({"name": "attention", "window": None}, "attention window=null"),
    ],
)
def test_values_as_their_author_would_write_them(value, text):
    assert value_text(value) == text


def test_labels():
    one, two = {"a.gate": "gate"}, {"a.gate": "gate", "a.k": "k"}
    assert label({"a.gate": "input"}, one) == "input"
    assert full_label({"a.gate": "input"}, one) == "gate=input"
    assert label({"a.gate": "input", "a.k": 2}, two) == "gate=input, k=2"
    assert label({"a.gate": "input"}, two) == "gate=input"


def test_numbers():
    assert all(map(is_number, (1, 0.5, [4], (4,))))
    assert not any(map(is_number, (True, None, "4", [4, 8])))


def test_slices_sort_by_number():
    assert sorted(["pairs=16", "depth=2", "pairs=4"], key=natural) == ["depth=2", "pairs=4", "pairs=16"]


def test_seeds():
    assert [seeds_text(s) for s in ([0, 1, 2], [3, 0], [5], [0, 1], [0, 2, 4])] == [
        "0..2",
        "0, 3",
        "5",
        "0, 1",
        "0, 2, 4",
    ]


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

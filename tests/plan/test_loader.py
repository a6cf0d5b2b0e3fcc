"""Strict YAML: what every scalar is, what is refused, and on which line."""

from pathlib import Path
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.loader import load, load_text, parse_value, read


def value(text: str) -> Any:
    return load_text(f"a: {text}", "g.yaml")[0]["a"]


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_text(text, "g.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-3", 0.001),
        ("1.0e-3", 0.001),
        ("3E-4", 0.0003),
        ("2e-5", 0.00002),
        ("1e+3", 1000.0),
        ("1e3", 1000.0),
        ("12e03", 12000.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("+1.", 1.0),
        ("-1.5E+2", -150.0),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("0", 0),
        ("-3", -3),
        ("+4", 4),
        ("010", 10),
        ("0o17", 15),
        ("0x1f", 31),
    ],
)
def test_numbers_of_yaml_1_2(text: str, number: float):
    found = value(text)
    assert found == number
    assert type(found) is type(number)


def test_nan():
    assert value(".NaN") != value(".NaN")


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true(text: str):
    assert value(text) is True


@pytest.mark.parametrize("text", ["false", "False", "FALSE"])
def test_false(text: str):
    assert value(text) is False


@pytest.mark.parametrize("text", ["null", "Null", "NULL", "~", ""])
def test_null(text: str):
    assert value(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "off",
        "On",
        "OFF",
        "no",
        "NO",
        "yes",
        "Yes",
        "y",
        "n",
        "none",
        "None",
        "nUll",
        "tRUE",
        "1:30",
        "1:30:00",
        "190:20:30",
        "2024-01-01",
        "2001-12-14t21:59:43Z",
        "1_000",
        "0b11",
        "0o8",
        "1e",
        "1e+",
        "e3",
        ".",
        ".e3",
        "+",
        "1.2.3",
        "0..4",
        "inf",
        "nan",
        "=",
    ],
)
def test_text_stays_text(text: str):
    assert value(text) == text


@pytest.mark.parametrize("text", ["1e-3", "true", "null", "~", "4", "<<"])
def test_quotes_make_text(text: str):
    assert value(f"'{text}'") == text
    assert value(f'"{text}"') == text
    assert value(f"!!str {text}") == text


def test_keys_are_text_as_written():
    data, _ = load_text("null: 1\nyes: 2\n1e-3: 3\n0.001: 4\ntrue: 5\n8: 6\n", "g.yaml")
    assert list(data) == ["null", "yes", "1e-3", "0.001", "true", "8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "g.yaml:3: a: this key is given twice, on lines 1 and 3; keep one"),
        ("'a': 1\na: 2\n", "g.yaml:2: a: this key is given twice, on lines 1 and 2; keep one"),
        ("{a: 1, a: 2}", "g.yaml:1: a: this key is given twice, on line 1; keep one"),
        (
            "x:\n  a: 1\n  b:\n    c: 1\n    d: 2\n    c: 3\n",
            "g.yaml:6: x.b.c: this key is given twice, on lines 4 and 6; keep one",
        ),
        ("x:\n- a: 1\n- a: 1\n  a: 2\n", "g.yaml:4: x.1.a: this key is given twice, on lines 3 and 4; keep one"),
        ("x: {a: {}}\ny: 1\nx: {}\n", "g.yaml:3: x: this key is given twice, on lines 1 and 3; keep one"),
        ("x:\n  a.b: 1\n  a:\n    b: 2\n", "g.yaml:4: x.a.b: this key is given twice, on lines 2 and 4; keep one"),
        ("x.a: 1\nx: {a: 2}\n", "g.yaml:2: x.a: this key is given twice, on lines 1 and 2; keep one"),
        (
            "b: &b {x: 1}\nc:\n  <<: *b\n  <<: *b\n",
            "g.yaml:4: c.<<: this key is given twice, on lines 3 and 4; keep one",
        ),
        (
            "b: &b {x: 1}\nc:\n  <<: *b\n  y: 1\n  y: 2\n",
            "g.yaml:5: c.y: this key is given twice, on lines 4 and 5; keep one",
        ),
    ],
)
def test_a_key_twice_names_key_and_both_lines(text: str, message: str):
    assert refused(text) == message


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("<<: *b", {"x": 1, "y": 2}),
        ("<<: *b\n  x: 3", {"x": 3, "y": 2}),
        ("x: 3\n  <<: *b", {"x": 3, "y": 2}),
        ("<<: [*b, *d]", {"x": 1, "y": 2, "z": 7}),
        ("<<: [*d, *b]\n  z: 8", {"x": 6, "y": 2, "z": 8}),
        ("<<: {x: 5}\n  w: 0", {"x": 5, "w": 0}),
    ],
)
def test_merge_keys_are_no_duplicates(text: str, merged: dict[str, int]):
    data, _ = load_text(f"b: &b {{x: 1, y: 2}}\nd: &d {{x: 6, z: 7}}\nc:\n  {text}\n", "g.yaml")
    assert data["c"] == merged


def test_one_anchor_used_often():
    data, _ = load_text("a: &a [1, 2]\nb: *a\nc: [*a, *a]\n", "g.yaml")
    assert data["c"] == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: [1,", 1, "not valid YAML"),
        ("a: 1\n\tb: 2", 2, "indent with spaces"),
        ("a: b: c", 1, "in quotes"),
        ("a: *b", 1, "undefined alias"),
        ("---\na: 1\n---\nb: 1", 3, "single document"),
        ("a: 1\nb: !!python/object:os.system x", 2, "is not a tag of plain data"),
        ("a: !!timestamp 2020-01-01", 1, "is not a tag of plain data"),
        ("a: !!set {b}", 1, "is not a tag of plain data"),
        ("a: !custom b", 1, "is not a tag of plain data"),
        ("a: !!int x", 1, "is not a whole number"),
        ("a: !!bool maybe", 1, "is not true or false"),
        ("a: " + "9" * 5000, 1, "(5000 digits)"),
        ("? [a]\n: 1", 1, "a key must be text"),
        ("a: 1\n? {b: 1}\n: 1", 2, "a key must be text"),
        ("c:\n  <<: 3", 2, "merging"),
        ("a: &a [*a]", 1, "contains itself"),
        ("a: &a {b: {c: *a}}", 1, "contains itself"),
    ],
)
def test_faults_name_their_line(text: str, line: int, word: str):
    message = refused(text)
    assert message.startswith(f"g.yaml:{line}: ")
    assert word in message
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize("text", ["a: \x07", "[" * 5000])
def test_faults_without_a_line(text: str):
    assert refused(text).startswith("g.yaml: ")


def test_lines_of_keys_nested_dotted_listed_and_merged():
    _, source = load_text("b: &b\n  x: 1\nc:\n  <<: *b\n  y.z: 2\n  l:\n  - 3\n  - m: 4\n", "g.yaml")
    expected = {"b": 1, "b.x": 2, "c": 3, "c.y.z": 5, "c.l.0": 7, "c.l.1": 8, "c.l.1.m": 8, "c.x": 2}
    assert {path: source.lines[path] for path in expected} == expected
    assert source.at("c.y.z.q.r") == "g.yaml:5"
    assert source.at("nowhere") == "g.yaml"


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n"])
def test_an_empty_document_is_nothing(text: str):
    assert load_text(text, "g.yaml")[0] is None


def test_files(tmp_path: Path):
    path = tmp_path / "g.yaml"
    path.write_bytes("\ufeffa: [1e-3, é]\r\nb: 2\r\n".encode())
    data, source = load(read(path), str(path))
    assert data == {"a": [0.001, "é"], "b": 2}
    assert source.at("b") == f"{path}:2"
    path.write_bytes(b"a: \xff")
    for bad, word in ((path, "UTF-8"), (tmp_path, "cannot be read"), (tmp_path / "none.yaml", "no such file")):
        with pytest.raises(ConfigError, match=word) as caught:
            load(read(bad), str(bad))
        assert str(caught.value).startswith(f"{bad}: ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2e-5", 0.00002),
        ("[4,8]", [4, 8]),
        ("[4, 8]", [4, 8]),
        ("{name: attention}", {"name": "attention"}),
        ("{name: attention, window: null}", {"name": "attention", "window": None}),
        ("none", "none"),
        ("off", "off"),
        ("null", None),
        ("", None),
        ("true", True),
        ("'3'", "3"),
        ("0..4", "0..4"),
    ],
)
def test_values_of_the_command_line(text: str, found: Any):
    assert parse_value(text) == found
    assert type(parse_value(text)) is type(found)


@pytest.mark.parametrize("text", ["[4", "{a: 1, a: 2}", "a: b: c", "@"])
def test_values_that_are_none(text: str):
    with pytest.raises(ConfigError) as caught:
        parse_value(text)
    assert str(caught.value).startswith(f"{text}: ")
    assert "\n" not in str(caught.value)

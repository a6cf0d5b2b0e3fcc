"""Ways to spoil a file, drawn from a generator with a seed: the same seed spoils it the same way."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import yaml

Way = Callable[[bytes, Random], bytes]

#: What stands where another value should: as text, for a place in a file or a word on a command line.
TEXTS = (
    *("1e400", "-1e400", "1e-400", "-0", "-0.0", "NaN", ".nan", ".inf", "-.inf", "Infinity", "0x10", "0o17", "1_000"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 400, "1" * 5000, "0.1.2", "1:30"),
    *("{}", "[]", "[[]]", "[{}]", "{a: {b: {c: 1}}}", "null", "~", "''", '""', "true", "off", "2001-01-01", "- - - -"),
    *("&a [*a]", "*a", "<<", "<<: *a", "!!python/object:os.system", "!!python/name:os.system", "!!binary aGk=", "!x 1"),
    *("\t", "\0", "\x1b[31m", "\x7f", "\u202e", "\u2066", "\u2028", "\ufeff", "\u200b", "\ud800", "\U0001f4a5"),
    *("é" * 300, "..", "../..", "/dev/null", "%", "@", "`", "|", ">", "?", ": ", "#", "'", '"', "\\", "\n", "\r\n"),
    *("a" * 5000, "[" * 3000, "{a: " * 300, "0..9", "9..0", "0..", "model.mixer.gate", "train", "context", "inf", "-1"),
    *("0", "0.5"),
)  # fmt: skip
#: The same as values, for a place in a tree.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 5e-324, 1e308),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "1", "0.5", "none", "../..", "\0", "\x1b[31m", "\u202e"),
    *("\ud800", "é" * 300, "a" * 5000, "a\nb", [], {}, [[]], [None], [0], ["x", "x"], {"": {}}, {"a": 1}),
    {"a": {"a": []}},
)  # fmt: skip
_TOKEN = re.compile(rb"[^\s,:\[\]{}]+")


def encoded(text: str) -> bytes:
    """As UTF-8, halves of characters too."""
    return text.encode("utf-8", "surrogatepass")


# ---- on bytes ----


def _place(data: bytes, rng: Random) -> int:
    return rng.randrange(len(data)) if data else 0


def flip(data: bytes, rng: Random) -> bytes:
    """Another bit somewhere."""
    where = _place(data, rng)
    return data[:where] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[where : where + 1]) + data[where + 1 :]


def odd_byte(data: bytes, rng: Random) -> bytes:
    """A byte put in or in place of another one, one that text rarely has."""
    where = _place(data, rng)
    odd = rng.choice((b"\0", b"\xff", b"\t", b"\r", b"\x80", b"\x1b", b"\n"))
    return data[:where] + odd + data[where + rng.randrange(2) :]


def cut(data: bytes, rng: Random) -> bytes:
    """Without its end, as after a full disk, or without its beginning."""
    where = _place(data, rng)
    return data[where:] if rng.random() < 0.2 else data[:where]


def gap(data: bytes, rng: Random) -> bytes:
    """Without a piece, or with zeros there, as a file system leaves them after a crash."""
    start, end = sorted((_place(data, rng), _place(data, rng)))
    return data[:start] + (b"\0" * (end - start) if rng.random() < 0.3 else b"") + data[end:]


def twice(data: bytes, rng: Random) -> bytes:
    """A piece given twice."""
    start, end = sorted((_place(data, rng), _place(data, rng)))
    return data[:end] + data[start:]


def _lines(data: bytes, rng: Random) -> tuple[list[bytes], int, int]:
    lines = data.split(b"\n")
    return lines, rng.randrange(len(lines)), rng.randrange(len(lines))


def swap_lines(data: bytes, rng: Random) -> bytes:
    """Two lines in each other's place."""
    lines, one, two = _lines(data, rng)
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def move_line(data: bytes, rng: Random) -> bytes:
    """A line copied, moved or removed."""
    lines, one, two = _lines(data, rng)
    line = lines[one] if rng.random() < 0.5 else lines.pop(one)
    if rng.random() < 0.7:
        lines.insert(two, line)
    return b"\n".join(lines)


def indent(data: bytes, rng: Random) -> bytes:
    """A line further in or out."""
    lines, one, _ = _lines(data, rng)
    lines[one] = rng.choice((b"  ", b" ", b"\t")) + lines[one] if rng.random() < 0.6 else lines[one].lstrip()
    return b"\n".join(lines)


def token(data: bytes, rng: Random) -> bytes:
    """A word or number replaced by one of `TEXTS`, or by another word of the file."""
    found = list(_TOKEN.finditer(data))
    if not found:
        return encoded(rng.choice(TEXTS))
    old, other = rng.choice(found), rng.choice(found)[0]
    new = other if rng.random() < 0.25 else encoded(rng.choice(TEXTS))
    return data[: old.start()] + new + data[old.end() :]


def letter(data: bytes, rng: Random) -> bytes:
    """A word with a letter less, as it is mistyped: an unknown key, often."""
    found = [each for each in _TOKEN.finditer(data) if len(each[0]) > 1]
    if not found:
        return data
    where = (old := rng.choice(found)).start() + rng.randrange(len(old[0]))
    return data[:where] + data[where + 1 :]


BYTES: tuple[Way, ...] = (flip, odd_byte, cut, gap, twice)
LINES: tuple[Way, ...] = (swap_lines, move_line, indent, token, token, token, letter)


# ---- on what a file says ----


def _places(value: Any, rng: Random) -> Iterator[tuple[Any, Any]]:
    """Every container of a tree with each of its keys or numbers."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key], rng)


def _deep(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def spoil(tree: Any, rng: Random, deepest: int = 500) -> Any:
    """A tree with another value at a place, a place less, one under another name, or one more. Changes the given."""
    places = list(_places(tree, rng))
    if not places:
        return rng.choice(VALUES)
    parent, key = rng.choice(places)
    match rng.randrange(10):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[rng.choice((f"{key}s", "", "\u202e", "x.y", f"{key}.x"))] = parent.pop(key)
        case 2 if isinstance(parent, dict):
            parent[rng.choice(TEXTS)[:40]] = rng.choice(VALUES)
        case 3 if isinstance(parent, list):
            parent.insert(key, parent[key])
        case 4:
            other, its = rng.choice(places)
            parent[key] = json.loads(json.dumps(other[its]))
        case 5 if rng.random() < 0.2:
            parent[key] = _deep(deepest)
        case 6 if type(parent[key]) in (int, float):
            parent[key] = rng.choice(
                (-parent[key], parent[key] + 1, parent[key] * 10, float(parent[key]), [parent[key]])
            )
        case _:
            parent[key] = rng.choice(VALUES)
    return tree


def json_tree(data: bytes, rng: Random) -> bytes:
    """A JSON file that says something else in one place."""
    # What Python's own writer cannot write so deep is written by hand.
    return json.dumps(spoil(json.loads(data), rng, deepest=500), ensure_ascii=rng.random() < 0.5).encode(
        errors="surrogatepass"
    )


def json_line(data: bytes, rng: Random) -> bytes:
    """A file of a JSON value a line, one of which says something else."""
    lines = [line for line in data.split(b"\n") if line]
    where = rng.randrange(len(lines))
    lines[where] = json_tree(lines[where], rng)
    return b"".join(line + b"\n" for line in lines)


def yaml_tree(data: bytes, rng: Random) -> bytes:
    """A YAML file that says something else in one place."""
    changed = spoil(yaml.safe_load(data), rng, deepest=100)
    return encoded(yaml.safe_dump(changed, allow_unicode=True, sort_keys=False))


def bomb(data: bytes, rng: Random) -> bytes:
    """The file and aliases, at each level several of the level below: few bytes, many nodes."""
    wide, high = rng.randrange(2, 10), rng.randrange(2, 11)
    levels = ["a0: &a0 [1]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * wide)}]" for n in range(1, high)]
    return data + b"\n" + "\n".join(levels).encode() + b"\n"


def mutated(data: bytes, ways: Sequence[Way], rng: Random) -> bytes:
    """The file after one to three of the ways; never the file as it was."""
    for _ in range(20):
        found = data
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            try:
                found = rng.choice(ways)(found, rng)
            except (
                ValueError,
                yaml.YAMLError,
                IndexError,
                RecursionError,
            ):  # it is none any more, after the way before
                continue
        if found != data:
            return found
    raise AssertionError("twenty times nothing was changed")

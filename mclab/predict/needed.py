"""Where a sequence holds what its queries need, read from tokens and roles alone: the value behind the asked key.

Knows no task: a pair is a run of key tokens and the run of value tokens after it, whatever marks stand between.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """A key and its value in a sequence, of any number of tokens."""

    key: tuple[int, ...]
    value: tuple[int, ...]
    at: tuple[int, ...]
    """The positions of the value's tokens."""


def pairs(tokens: Sequence[int], roles: Sequence[str]) -> list[Pair]:
    """Every pair of a sequence, in order. Marks belong to what they stand in; anything else ends a pair."""
    found: list[Pair] = []
    key: list[int] = []
    value: list[int] = []
    for at, role in [*enumerate(roles), (len(roles), "end")]:
        if role == "mark" or (role == "value" and key):
            value += [at] * (role == "value")
            continue
        if value:
            found.append(Pair(tuple(tokens[i] for i in key), tuple(tokens[i] for i in value), tuple(value)))
            key, value = [], []
        key = [*key, at] if role == "key" else []
    return found


def needed(tokens: Sequence[int], roles: Sequence[str], asked: Sequence[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """For each scored position of one answer the positions of the value token that is wanted there.

    `asked` holds position and wanted token, in the order of the answer, which may be several values in a row. A value
    that stands in the sequence more than once behind the asked key has several positions; what is not found has none.
    """
    found, at = dict[int, tuple[int, ...]](), 0
    every, wanted = pairs(tokens, roles), tuple(answer for _, answer in asked)
    while at < len(asked):
        place = asked[at][0]
        key = _asked_key(tokens, roles, place)
        fit = [p for p in every if p.at[-1] < place and _within(p.key, key) and _begins(wanted[at:], p.value)]
        length = len(fit[0].value) if fit else 1
        for step in range(length):
            found[asked[at + step][0]] = tuple(p.at[step] for p in fit if len(p.value) == length)
        at += length
    return found


def _asked_key(tokens: Sequence[int], roles: Sequence[str], place: int) -> tuple[int, ...]:
    """The last run of query tokens up to `place`; several keys may stand in it."""
    return tuple(reversed([*_back(tokens, roles, place)]))


def _back(tokens: Sequence[int], roles: Sequence[str], place: int) -> Iterator[int]:
    inside = False
    for at in range(place, -1, -1):
        if roles[at] == "query":
            inside = True
            yield tokens[at]
        elif inside and roles[at] != "mark":
            return


def _within(key: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    return any(asked[at : at + len(key)] == key for at in range(len(asked) - len(key) + 1))


def _begins(wanted: tuple[int, ...], value: tuple[int, ...]) -> bool:
    return wanted[: len(value)] == value

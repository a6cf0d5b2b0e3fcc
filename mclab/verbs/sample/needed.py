"""Find where a sequence contains the value that a query needs, and which of the memories that the query sees hold it.

This uses only the tokens and their roles, so that it works for every task. A pair is a run of key tokens and the run of
value tokens after it; marker tokens between them do not matter.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mclab.caching.segment import Segments, segments_of
from mclab.config.model import MemoryMixer
from mclab.report.characters import Strip


class Pair(NamedTuple):
    """A key and its value in a sequence; both can have any number of tokens."""

    key: tuple[int, ...]
    value: tuple[int, ...]
    at: tuple[int, ...]
    """The positions of the value's tokens."""


def pairs(tokens: Sequence[int], roles: Sequence[str]) -> list[Pair]:
    """Return all pairs of a sequence, in order.

    Marker tokens are skipped. The next token that is not a value token ends the pair.
    """
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
    """Return {scored position: positions in the sequence of the value token that is wanted there}, for one answer.

    `asked` holds (position, wanted token) in the order of the answer, which may be several values in a row. A token has
    several positions if the asked key occurs several times with the same value, and none if it is not found.
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
    """Return the tokens of the last run of query tokens at or before `place`; they may be those of several keys."""
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


def strip(mixer: MemoryMixer, length: int, weights: Sequence[float], at: int, needs: Sequence[int]) -> Strip:
    """Return the weights with which the query at position `at` reads: one for each memory that it sees, oldest first.

    The last of these is for the online memory. `weights` [columns] is the row for this query that
    `caching/record_weights.py` recorded in a sequence of `length` tokens. `Strip.held` has the places of the memories
    that were written with a token at one of the positions `needs`. All strips of a sequence have the same length,
    padded with zeros: the number of segments, or with buckets the largest number of memories that any query of the
    sequence sees.
    """
    segments = segments_of(mixer, length)
    block, blocks = at // segments.segment, {place // segments.segment for place in needs}
    run = next(number for number, (_, end) in enumerate(segments.runs) if block < end)
    online = segments.columns - 1 if mixer.segmentation == "log" else run
    cells = [*_kept(segments, block), (segments.runs[run], online)]
    held = {cell for cell, (span, _) in enumerate(cells) if any(span[0] <= one < span[1] for one in blocks)}
    seen = [weights[column] for _, column in cells]
    most = _most(segments) if mixer.segmentation == "log" else segments.columns
    return Strip([*seen, *[0.0] * (most - len(seen))], len(seen), frozenset(held))


def _kept(segments: Segments, block: int) -> list[tuple[tuple[int, int], int]]:
    """Return ((first block, end block), column) for each kept memory that the tokens of `block` read, oldest first."""
    each = zip(segments.spans, segments.readers, strict=True)
    return sorted((span, column) for column, (span, (first, end)) in enumerate(each) if first <= block < end)


def _most(segments: Segments) -> int:
    """Return the largest number of memories, the online one included, that any query sees with buckets."""
    return max(n.bit_count() for n in range(segments.count)) + 1

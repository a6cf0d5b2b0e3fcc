"""Where a sequence holds what a query needs, and which of the memories that the query reads hold it.

The positions are read from tokens and roles alone: a pair is a run of key tokens and the run of value tokens after it,
whatever marks stand between. No task is known here.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mclab.caching.segment import Segments, segments_of
from mclab.config.model import MemoryMixer
from mclab.report.characters import Strip


class Pair(NamedTuple):
    """A key and its value in a sequence, of any number of tokens."""

    key: tuple[int, ...]
    value: tuple[int, ...]
    at: tuple[int, ...]
    """The positions of the value's tokens."""


def pairs(tokens: Sequence[int], roles: Sequence[str]) -> list[Pair]:
    """Every pair of a sequence, in order. Marks belong to the key or value they are in; anything else ends a pair."""
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
    """The last run of query tokens up to `place`; it may hold several keys."""
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
    """What the query at `at` reads, a cell for each memory that it sees, the oldest first and the online one last.

    `weights` is one row [columns] of what `caching/record_weights.py` saw in a sequence of `length` tokens. A cell is
    held where its memory was written with one of the tokens `needs`. Cells behind those that the query sees are zero:
    constant and listed segments fill the strip up to the last segment, buckets up to the most that any query of the
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
    """Blocks and column of each kept memory that the tokens of `block` read, from the oldest."""
    each = zip(segments.spans, segments.readers, strict=True)
    return sorted((span, column) for column, (span, (first, end)) in enumerate(each) if first <= block < end)


def _most(segments: Segments) -> int:
    """Memories that a query of buckets can see at most."""
    return max(n.bit_count() for n in range(segments.count)) + 1

"""A small set of combinations in which every pair of values of every two axes occurs."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

Row = dict[str, Any]


def full(axes: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Every combination."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def pairwise(axes: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Greedy pairwise cover, deterministic: a row starts from an open pair, then takes what closes most."""
    names = list(axes)
    open_pairs = {
        ((a, i), (b, j)): None
        for a, b in combinations(names, 2)
        for i in range(len(axes[a]))
        for j in range(len(axes[b]))
    }
    rows = []
    while open_pairs:
        picked = dict(next(iter(open_pairs)))
        for name in names:
            if name not in picked:
                options = range(len(axes[name]))
                picked[name] = max(options, key=lambda i: _closes(open_pairs, picked, name, i))
        ordered = [(name, picked[name]) for name in names]
        for pair in combinations(ordered, 2):
            open_pairs.pop(pair, None)
        rows.append({name: axes[name][i] for name, i in ordered})
    return rows


def _closes(open_pairs: Mapping[Any, None], picked: Mapping[str, int], name: str, index: int) -> int:
    mine = (name, index)
    return sum((mine, other) in open_pairs or (other, mine) in open_pairs for other in picked.items())


def label(row: Row) -> str:
    """A short test id."""
    return "-".join(str(value) for value in row.values())

"""The pairwise cover covers, and is small."""

from itertools import combinations

from tests.covering import full, pairwise


def test_every_pair_of_values_occurs():
    axes = {"a": [1, 2, 3], "b": ["x", "y"], "c": [None, 0.5, 1], "d": [True, False]}
    rows = pairwise(axes)
    for one, other in combinations(axes, 2):
        seen = {(row[one], row[other]) for row in rows}
        assert seen == {(x, y) for x in axes[one] for y in axes[other]}
    assert len(rows) < len(full(axes)) / 2

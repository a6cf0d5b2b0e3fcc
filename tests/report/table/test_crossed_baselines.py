"""Changes crossed with other axes: each cell of the other axes has a baseline of its own."""

from mclab.plan.grid import plan_from
from mclab.report.plot.lines import numeric_axis
from mclab.report.prose.verdict import verdict
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_of
from mclab.report.write import markdown
from tests.report.plans import record

GRID = {
    "question": "Which, and how wide?",
    "base": {"task.pairs": [4, 8]},
    "changes": {"cached": {}, "plain": {"model.mixer.aggregate": "none"}},
    "grid": {"model.dim": [8, 16, 32]},
    "seeds": "0..3",
}
#: Accuracies of (cached, plain) at each width, before a little noise by seed.
MEANS = ((0.2, 0.1), (0.6, 0.3), (0.9, 0.85))


def summary():
    plan = plan_from(GRID, "crossed")
    levels = [level for pair in MEANS for level in pair]
    stored = {
        run_id: record(candidate.runs[seed], level + 0.01 * seed * (1 if place % 2 else 2))
        for place, (cell, level) in enumerate(zip(plan.cells, levels, strict=True))
        for candidate in cell.candidates
        for seed, run_id in candidate.run_ids().items()
    }
    return summarise(plan, stored.get)


def test_each_row_is_compared_with_the_first_change_beside_it():
    rows = summary().rows
    assert [row.difference is None for row in rows] == [True, False] * 3
    gaps = [round(row.difference.mean, 3) for row in rows[1::2]]
    assert gaps == [-0.115, -0.315, -0.065]
    assert all(row.p is not None and row.p < 0.05 for row in rows[1::2])


def test_words_say_which_baseline_is_meant():
    found = summary()
    assert found.rows[3].label == "plain, dim=16"
    assert "plain, dim=16 is 0.315" in " ".join(verdict(found))
    assert "below cached there" in " ".join(verdict(found))
    assert "Difference: row minus cached with the same other values" in markdown(found)
    assert markdown(found).splitlines()[2].startswith("| change")
    assert "to the first change with the same other values" in " ".join(terminal_of(found).split())


def test_the_width_makes_an_axis_and_the_changes_lines():
    axis = numeric_axis(summary())
    assert axis is not None
    assert (axis.path, axis.others) == ("model.dim", ("change",))


def stored(plan, levels):
    """The same accuracy, with a little noise by seed, for every candidate of a cell."""
    return {
        run_id: record(candidate.runs[seed], level + 0.01 * seed * (1 if place % 2 else 2))
        for place, (cell, level) in enumerate(zip(plan.cells, levels, strict=True))
        for candidate in cell.candidates
        for seed, run_id in candidate.run_ids().items()
    }


def test_a_baseline_in_which_the_other_axis_means_nothing_is_beside_every_cell():
    """Without a cache the segment changes nothing: its cells are the same runs, and still each a baseline."""
    grid = GRID | {
        "changes": {"none": {"model.mixer.aggregate": "none"}, "cached": {}},
        "grid": {"model.mixer.segment": [4, 8]},
    }
    plan = plan_from(grid, "crossed")
    assert [cell.name for cell in plan.cells] == [
        "none, segment=4",
        "cached, segment=4",
        "none, segment=8",
        "cached, segment=8",
    ]
    found = summarise(plan, stored(plan, [0.9, 0.5, 0.9, 0.7]).get)
    assert [row.difference is None for row in found.rows] == [True, False, True, False]
    assert found.rows[3].difference.mean < -0.1


def test_a_cell_whose_baseline_is_excluded_is_compared_with_nothing():
    plan = plan_from(GRID | {"exclude": [{"model.mixer.aggregate": "grm", "model.dim": 32}]}, "crossed")
    found = summarise(plan, stored(plan, [0.2, 0.1, 0.6, 0.3, 0.85]).get)
    assert found.rows[-1].difference.kind == "alone"
    assert "no baseline" in markdown(found)
    assert "no baseline: the first change has no cell with the same other values" in markdown(found)

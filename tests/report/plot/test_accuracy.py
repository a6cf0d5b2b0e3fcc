"""Figures: what is drawn for which grid, and that files are equal twice."""

import pytest

from mclab.report.plot.kinds import accuracy_figure, render, write_plots
from mclab.report.plot.lines import lines_along, numeric_axis
from mclab.report.table.summary import summarise
from tests.report.plans import AGGREGATE, GATE, QUESTION, SEGMENT, gates, make_plan, store

SIZES = (4, 8, 16, 32)


def summary_of(cells, results=None, **more):
    plan = make_plan(cells, seeds=range(3), **more)
    results = results or [[0.5 + 0.01 * place, 0.6, 0.7] for place in range(len(cells))]
    return summarise(plan, store(plan, results).get)


def dots(panel):
    """Every seed's dot and every diverged seed's cross."""
    seeds = [line for line in panel.lines if line.get_alpha() == 0.45]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    return sum(len(line.get_xdata()) for line in seeds), sum(len(line.get_xdata()) for line in crosses)


def test_words_make_points_and_numbers_make_lines():
    assert numeric_axis(summary_of([{GATE: "context"}, {GATE: "input"}])) is None
    assert numeric_axis(summary_of([{SEGMENT: size} for size in SIZES])).path == SEGMENT
    assert numeric_axis(summary_of([{SEGMENT: 4}, {SEGMENT: 8}])) is None
    named = [{}, *({SEGMENT: size} for size in SIZES)]
    assert numeric_axis(summary_of(named, names=list("abcde"), named=True)) is None


def test_lines_by_the_other_key_with_a_reference():
    cells = [{AGGREGATE: how, SEGMENT: size} for how in ("grm", "ssc") for size in (16, 4, 8)]
    summary = summary_of([*cells, {AGGREGATE: "none"}])
    lines = lines_along(summary, numeric_axis(summary))
    assert [line.label for line in lines] == ["aggregate=grm", "aggregate=ssc", "aggregate=none"]
    assert [line.xs for line in lines] == [(4.0, 8.0, 16.0), (4.0, 8.0, 16.0), ()]
    assert len({line.colour for line in lines}) == 3


def test_two_other_keys_are_colour_and_dash():
    cells = [
        {AGGREGATE: how, "model.dim": dim, "task.pairs": [pairs]}
        for how in ("grm", "none")
        for dim in (16, 32, 64)
        for pairs in (1, 2, 4, 8)
    ]
    summary = summary_of(cells)
    axis = numeric_axis(summary)
    assert axis.path == "task.pairs"
    looks = [(line.colour, line.dash) for line in lines_along(summary, axis)]
    assert looks == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_a_zipped_key_follows():
    summary = summary_of([{"task.length": n, "task.pairs": [n // 16]} for n in (32, 64, 128)])
    axis = numeric_axis(summary)
    assert (axis.path, axis.others, axis.followers) == ("task.length", (), ("task.pairs",))
    assert len(lines_along(summary, axis)) == 1
    assert accuracy_figure(summary).axes[0].get_xlabel() == "length (pairs 2, 4, 8)"


def test_too_many_lines_are_points():
    cells = [
        {"model.layers": n, "model.dim": d, SEGMENT: s} for n in (1, 2, 3) for d in (8, 16, 32) for s in (4, 8, 16)
    ]
    assert numeric_axis(summary_of(cells)) is None


@pytest.mark.parametrize("key", [GATE, SEGMENT])
def test_every_seed_is_a_point_in_every_panel(key):
    values = ("context", "input", "none") if key == GATE else SIZES[:3]
    summary = summary_of([{key: v} for v in values], [[0.5, 0.6, 0.7], [0.6, "diverged", None], ["failed", 0.1, 0.2]])
    figure = accuracy_figure(summary)
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in panels] == ["all slices", "pairs=4", "pairs=8"]
    assert [dots(axis) for axis in panels] == [(6, 1)] * 3
    assert QUESTION in [text.get_text() for text in figure.texts]
    assert panels[0].get_xlabel() in ("test accuracy", "segment")


def test_a_slice_that_a_cell_lacks_is_empty_there():
    summary = summary_of([{"task.pairs": [4, 8]}, {"task.pairs": [8, 16]}])
    figure = accuracy_figure(summary)
    assert [dots(axis)[0] for axis in figure.axes if axis.get_visible()] == [6, 3, 6, 3]


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_same_bytes_twice(form):
    given = gates([0.5, 0.6, 0.7], [0.6, "diverged", 1.0])
    assert render(summarise(*given), form) == render(summarise(*given), form)


def test_files(tmp_path):
    paths = write_plots(*gates([0.5, 0.6, 0.7], [0.6, 0.7, 0.8]), tmp_path / "plots")
    assert [path.name for path in paths] == ["accuracy.png", "accuracy.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="format: gif"):
        write_plots(*gates([0.5]), tmp_path, formats=["gif"])


def test_dollars_and_long_words_are_only_text():
    summary = summary_of([{GATE: "context"}], question="Does $x$ cost $y$ " + "more " * 60)
    render(summary, "png")


def test_empty_grids_draw():
    for cells in ([{GATE: "context"}], [{SEGMENT: size} for size in SIZES]):
        summary = summarise(make_plan(cells), {}.get)
        render(summary, "svg")


def test_a_single_seed_has_no_interval():
    for cells in ([{GATE: "context"}, {GATE: "input"}], [{SEGMENT: size} for size in SIZES]):
        plan = make_plan(cells, seeds=[0])
        render(summarise(plan, store(plan, [[0.5]] * len(cells)).get), "png")

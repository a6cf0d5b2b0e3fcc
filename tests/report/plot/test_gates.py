"""The picture of gates: what is drawn where."""

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.patches import Rectangle

from mclab.report.characters import Strip
from mclab.report.plot.gates import MOST_ROWS, WRONG, GatePanel, gate_figure, gate_map

STRIPS = [
    Strip([0.9, 0.1, 0.0, 0.0], 2, frozenset({0})),
    Strip([0.2, 0.3, 0.5, 0.0], 3, frozenset({1, 2})),
    Strip([0.25, 0.25, 0.25, 0.25], 4, frozenset()),
]
LABELS, RIGHT = ["first", "second", "third"], [True, False, True]


def panels(figure):
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_title()]


def test_weights_marks_and_what_is_not_yet_seen():
    figure = gate_figure("title", LABELS, RIGHT, [GatePanel("layer 0", STRIPS), GatePanel("layer 1", STRIPS[::-1])])
    first, second = panels(figure)
    assert (first.get_title(), second.get_title()) == ("layer 0", "layer 1")
    drawn = np.ma.filled(first.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(drawn, [[0.9, 0.1, np.nan, np.nan], [0.2, 0.3, 0.5, np.nan], [0.25] * 4])
    marked = {(p.get_x() + 0.5, p.get_y() + 0.5) for p in first.patches if isinstance(p, Rectangle)}
    assert marked == {(0, 0), (1, 1), (2, 1)}
    assert "title" in [text.get_text() for text in figure.texts]


def test_labels_show_what_is_wrong():
    (panel,) = panels(gate_figure("title", LABELS, RIGHT, [GatePanel("layer 0", STRIPS)]))
    ticks = panel.get_yticklabels()
    assert [tick.get_text() for tick in ticks] == LABELS
    wrong = matplotlib.colors.to_rgba(WRONG)
    assert [matplotlib.colors.to_rgba(tick.get_color()) == wrong for tick in ticks] == [False, True, False]


def test_of_many_queries_the_first_are_drawn_and_the_rest_counted():
    many = 100
    figure = gate_figure("title", ["q"] * many, [True] * many, [GatePanel("layer 0", STRIPS[:1] * many)])
    assert panels(figure)[0].images[0].get_array().shape == (MOST_ROWS, 4)
    assert any(f"{many - MOST_ROWS} more are not drawn" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_formats_and_many_heads(form, start):
    heads = [GatePanel(f"layer {n}", STRIPS) for n in range(6)]
    assert gate_map("a $title", LABELS, RIGHT, heads, form).startswith(start)

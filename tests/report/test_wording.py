"""Wording and layout: lists, cuts, wrapped lines, escapes, tick labels."""

from itertools import pairwise

import pytest

from mclab.report.plot.kinds import accuracy_figure
from mclab.report.plot.style import thinned
from mclab.report.prose.notes import notes
from mclab.report.table.columns import difference_text
from mclab.report.table.grids import LONGEST, cut_apart, markdown_escape
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from mclab.report.text import listed
from mclab.report.write import markdown
from tests.report.plans import GATE, SEGMENT, gates, make_plan, store


def test_one_pair_and_two_pairs():
    one, two = (summarise(*gates([0.5] * n, [0.75] * n)) for n in (1, 2))
    assert difference_text(one.rows[1]) == "+0.250 (1 pair)"
    assert difference_text(two.rows[1]) == "+0.250 (2 pairs)"


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("a", "a"),
        ("ab", "a and b"),
        ("abc", "a, b and c"),
        (["a=1, b=2", "c", "d"], "a=1, b=2; c and d"),
        ("abcdefg", "7 rows (a, b, c, …)"),
        (["a,b", *"cdefgh"], "7 rows (a,b; c; d; …)"),
    ],
)
def test_lists(labels, text):
    assert listed(list(labels)) == text


def test_every_line_of_words_fits_the_width():
    names = ["the full model as published", "without the context gate", "with no memory at all"]
    changes = [{}, {GATE: "input"}, {GATE: "none"}]
    plan = make_plan(changes, range(5), names=names, named=True, question="Why " * 30, warnings=("odd " * 40,))
    results = [[0.5, 0.6, 0.7, 0.8, 0.9], [0.6, "diverged", "failed", "oom", None], [0.1, 0.2, 0.2, 0.4, 0.5]]
    text = terminal_table(plan, store(plan, results).get, width=80)
    table = text.split("\n\n")[1].splitlines()
    assert [line for line in text.splitlines() if len(line) > 80 and line not in table] == []
    assert any("\n  " in part for part in text.split("\n\n")[3:])


def test_nothing_left_out_is_not_mentioned():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0])
    assert "left out" not in terminal_table(*given, width=300)
    assert "\nhidden columns: " in terminal_table(*given, width=100)


def test_cuts_never_clash():
    start, end = "a" * 40, "b" * 40
    assert cut_apart(["short", start]) == ["short", "a" * (LONGEST - 1) + "…"]
    middle = cut_apart([f"{start} one", f"{start} two"])
    assert [len(text) for text in middle] == [LONGEST] * 2
    assert [text[-4:] for text in middle] == [" one", " two"]
    # they differ only where both ways cut them: more is shown, until they differ
    hidden = cut_apart([f"{start}1{end}", f"{start}2{end}"])
    assert len(set(hidden)) == 2
    assert cut_apart([start, start]) == ["a" * (LONGEST - 1) + "…"] * 2
    assert cut_apart([]) == []


def test_two_long_names_stay_apart_in_the_terminal():
    names = [f"a row with a name that goes on for a good while, part {n}" for n in (1, 2)]
    plan = make_plan([{}, {GATE: "input"}], range(3), names=names, named=True)
    rows = terminal_table(plan, store(plan, [[0.5, 0.6, 0.7]] * 2).get).split("\n\n")[1].splitlines()[2:]
    assert [row[:LONGEST].rstrip()[-6:] for row in rows] == ["part 1", "part 2"]


def test_escapes_of_emphasis_and_formulas():
    assert markdown_escape("_x_ *y* $z$") == r"\_x\_ \*y\* \$z\$"
    assert markdown_escape("__init__") == r"\_\_init\_\_"
    assert markdown_escape("weight_decay") == "weight_decay"
    names = ["_x_", "a*b", "$5"]
    plan = make_plan([{}, {GATE: "input"}, {GATE: "none"}], range(3), names=names, named=True)
    text = markdown(summarise(plan, store(plan, [[0.5, 0.6, 0.7]] * 3).get))
    assert all(f"| {shown} " in text for shown in (r"\_x\_", r"a\*b", r"\$5"))


def test_marks_are_explained_where_they_stand():
    assert not any("ceiling" in line or "edge" in line for line in notes(summarise(*gates([0.5] * 3, [0.6] * 3))))
    high = notes(summarise(*gates([1.0] * 3, [1.0] * 3)))
    assert any(line.startswith("(ceiling), in csv ceiling: row and baseline both reach 0.99") for line in high)
    over = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))
    plan = make_plan([{GATE: "context"}], range(2), over=over)
    records = store(plan, [[0.9] * 2], 0) | store(plan, [[0.5] * 2], 1) | store(plan, [[0.5] * 2], 2)
    edged = notes(summarise(plan, records.get))
    assert any(line.startswith("(edge), in csv lr_edge: the chosen value is an end of its range") for line in edged)


def test_tick_labels_keep_clear_of_each_other():
    # one letter is 0.085 inches: labels of 4 letters need 5 * 0.085 = 0.425 between their middles
    four = {float(at): "1234" for at in range(5)}
    assert thinned(four, 4 * 0.43 / 0.9) == ["1234"] * 5
    assert thinned(four, 4 * 0.42 / 0.9) == ["1234", "", "1234", "", "1234"]
    # the last label stays, and the one that it would run into goes
    assert thinned(four, 4 * 0.2 / 0.9) == ["1234", "", "", "", "1234"]
    assert thinned({0.0: "1234", 0.1: "1234"}, 0.4) == ["", "1234"]


def test_a_crowded_axis_is_thinned_in_the_figure():
    sizes = [1, 2, 3, 4, *range(100, 121)]
    plan = make_plan([{SEGMENT: size} for size in sizes], seeds=[0])
    figure = accuracy_figure(summarise(plan, store(plan, [[0.5]] * len(sizes)).get))
    figure.canvas.draw()
    for panel in figure.axes:
        boxes = [text.get_window_extent() for text in panel.get_xticklabels() if text.get_text() and text.get_visible()]
        if panel.get_visible() and boxes:
            assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
            assert panel.get_xticklabels()[-1].get_text() == "120"

"""Many rows: the ends are shown and said to stand for all, and nothing grows faster than the rows."""

import sys
from collections.abc import Callable

import pytest

from mclab.plan.plan import Plan
from mclab.plan.select import Lookup
from mclab.report.plot.kinds import accuracy_figure
from mclab.report.table.summary import MOST_ROWS, Summary, shortened, shortened_text, summarise
from mclab.report.terminal import MOST_LINES, terminal_table
from mclab.report.write import table_files
from tests.report.plans import make_plan, store

#: Rows of the highest and of the lowest accuracy that stand beside the first one.
HIGH, LOW = 25, 24
CLIP, DECAY = "train.clip", "train.weight_decay"


def grid(rows: int, **more: object) -> tuple[Plan, Lookup]:
    """Named rows of two seeds; the last of them are the best, row 7 has nothing."""
    plan = make_plan([{CLIP: 1.0 + n} for n in range(rows)], range(2), **more)
    results = [[None, None] if n == 7 else [0.2 + 0.5 * n / rows, 0.21 + 0.5 * n / rows] for n in range(rows)]
    return plan, store(plan, results).get


def named(rows: int) -> Summary:
    names = [f"row {n}" for n in range(rows)]
    return summarise(*grid(rows, names=names, named=True))


def test_the_ends_are_the_first_the_best_and_the_worst_in_the_plans_order() -> None:
    every = named(120)
    shown = shortened(every)
    places = [int(row.label.removeprefix("row ")) for row in shown.rows]
    assert places == [0, *[n for n in range(1, LOW + 2) if n != 7], *range(120 - HIGH, 120)]
    assert shown.rows[3].p == every.rows[3].p  # Holm's family is still all of them
    assert shortened_text(shown, every, "see there") == (
        "50 of 120 rows: the first, the 25 of highest and the 24 of lowest accuracy; see there"
    )


def test_fifty_rows_are_all_there() -> None:
    every = named(MOST_ROWS)
    assert shortened(every) is every
    assert shortened_text(every, every, "") == ""
    nothing = summarise(make_plan([{CLIP: 1.0 + n} for n in range(80)], [0]), {}.get)
    assert len(shortened(nothing).rows) == MOST_ROWS


def test_points_of_many_rows_say_what_they_leave_out() -> None:
    figure = accuracy_figure(named(120))
    assert len(figure.axes[0].get_yticks()) == MOST_ROWS
    foot = " ".join(figure.texts[1].get_text().split())
    assert "50 of 120 rows: the first, the 25 of highest and the 24 of lowest accuracy; the tables hold all." in foot
    assert "rows:" not in accuracy_figure(named(12)).texts[1].get_text()


@pytest.mark.parametrize("rows", [MOST_ROWS, 120])
def test_many_values_along_a_key_are_a_line_with_a_band(rows: int) -> None:
    figure = accuracy_figure(summarise(*grid(rows)))
    foot = " ".join(figure.texts[1].get_text().split())
    dense = rows > MOST_ROWS
    assert ("bands: 95 % t interval. Too many values (120) to draw every seed." in foot) == dense
    drawn = sum(len(line.get_xdata()) for line in figure.axes[0].lines)
    assert (drawn == rows - 1) == dense  # row 7 has no mean
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert (len(labels) < 50) == dense
    assert labels[-1] == str(rows)


def test_the_terminal_shows_the_ends_and_where_the_whole_table_is() -> None:
    plan, lookup = grid(200)
    text = terminal_table(plan, lookup)
    assert "50 of 200 rows: the first, the 25 of highest and the 24 of lowest accuracy; all are in table.md and" in text
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == MOST_ROWS + 2
    assert "rows: the first" not in terminal_table(*grid(12))


def test_as_many_sentences_as_anybody_reads() -> None:
    plan = make_plan([{CLIP: 1.0 + n} for n in range(100)], range(2))
    text = terminal_table(plan, store(plan, [["diverged", "diverged"]] * 100).get)
    assert text.count("diverged at step 120") < MOST_LINES
    assert "more such lines; see table.md" in text
    assert table_files(plan, store(plan, [["diverged", "diverged"]] * 100).get)["table.md"].count(b"at step 120") == 200


def calls(work: Callable[[], object]) -> int:
    """Python functions that `work` calls: its cost, the same on every machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("way", [table_files, terminal_table])
def test_twice_the_rows_are_twice_the_work(way: Callable[[Plan, Lookup], object]) -> None:
    few, many = (make_plan([{CLIP: 1.0 + n, DECAY: n / 1000} for n in range(rows)], range(2)) for rows in (100, 200))
    stored = [store(plan, [[0.5, 0.6]] * len(plan.cells)).get for plan in (few, many)]
    for plan, lookup in zip((few, many), stored, strict=True):
        way(plan, lookup)  # ids are made once
    assert calls(lambda: way(many, stored[1])) < 2.3 * calls(lambda: way(few, stored[0]))

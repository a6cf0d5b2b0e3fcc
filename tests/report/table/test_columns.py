"""The table as markdown and in the terminal."""

import pytest

from mclab.report.stats import spread
from mclab.report.table.grids import markdown_escape
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from mclab.report.text import mean_std, p_text, seconds, signed
from mclab.report.write import markdown
from tests.report.plans import AGGREGATE, GATE, QUESTION, SEGMENT, gates, make_plan, store


def page(*results, **more):
    return markdown(summarise(*gates(*results, **more)))


def line_of(text, word):
    return next(line for line in text.splitlines() if line.startswith(f"| {word}"))


def test_texts():
    assert mean_std(spread([0.5, 0.7])) == "0.600 ± 0.141 (2)"
    assert mean_std(spread([0.5])) == "0.500 (1)"
    assert [p_text(p) for p in (None, 0.0004, 0.0123, 1.0)] == ["–", "<0.001", "0.012", "1.000"]
    assert [signed(v) for v in (0.16, -0.16, -0.0001, 0.0)] == ["+0.160", "-0.160", "+0.000", "+0.000"]
    assert [seconds(v) for v in (None, 3.21, 1234.5)] == ["–", "3.2", "1,234"]


def test_markdown_has_everything():
    text = page([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7])
    assert text.startswith(f"# {QUESTION}\n\n| gate ")
    heads = [part.strip() for part in text.splitlines()[2].strip("|").split("|")]
    assert heads == [
        *("gate", "test accuracy", "95 % interval", "difference", "p", "solved", "status"),
        *("params", "state", "steps to 99 %", "tokens/s", "s/run"),
    ]
    row = [part.strip() for part in line_of(text, "input").strip("|").split("|")]
    assert row[1:3] == ["0.800 ± 0.200 (3)", "[0.303, 1.000]"]
    assert row[3].startswith("+0.200 [-0.048, +0.448]")
    assert row[5:] == ["1/3", "3 done", "12,345", "1,024 + 7,168", "–", "80,000", "10.0"]
    assert "2 done, 1 diverged" in text
    assert "none, seed 1: diverged at step 120." in text
    assert "Test accuracy by slice:" in text


def test_a_clean_table_has_no_status_column():
    assert "status" not in page([0.5] * 3, [0.6] * 3)


def test_one_slice_is_no_second_table():
    plan = make_plan([{"task.pairs": [4]}, {"task.pairs": [8]}], seeds=range(3))
    text = markdown(summarise(plan, store(plan, [[0.5] * 3] * 2).get))
    assert "by slice" not in text


def test_marks_in_words():
    text = page([1.0, 1.0, 0.995], [1.0, 0.995, 1.0], [1.0, 1.0, 0.995])
    assert "(ceiling)" in line_of(text, "input")
    assert "identical (ceiling)" in line_of(text, "none")
    assert "on every seed" in line_of(page([0.5, 0.6, 0.7], [0.4, 0.5, 0.6]), "input")
    over = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))
    plan = make_plan([{GATE: "context"}], seeds=range(2), over=over)
    records = store(plan, [[0.9] * 2], 0) | store(plan, [[0.5] * 2], 1) | store(plan, [[0.5] * 2], 2)
    assert "0.001 (edge)" in line_of(markdown(summarise(plan, records.get)), "context")


def test_markdown_escapes():
    assert markdown_escape("a|b *c* `d` <b> p < 0.05\nnext") == r"a\|b \*c\* \`d\` \<b> p < 0.05 next"
    plan = make_plan([{}, {GATE: "input"}], seeds=range(3), names=["full", "a|b"], question="x|y?", named=True)
    text = markdown(summarise(plan, store(plan, [[0.5] * 3] * 2).get))
    assert text.startswith("# x\\|y?\n")
    assert line_of(text, r"a\|b").replace(r"\|", "").count("|") == line_of(text, "full").count("|")


def test_changes_go_by_their_names():
    plan = make_plan([{}, {GATE: "input"}], seeds=range(3), names=["full", "- context"], named=True)
    text = markdown(summarise(plan, store(plan, [[0.5] * 3, [0.4] * 3]).get))
    assert text.splitlines()[2].startswith("| cell ")
    assert '- "- context" is 0.100 below "full" on each of 3 seeds' in text


def test_the_name_stands_in_for_a_missing_question():
    assert page([0.5], question=None).startswith("# gating\n")


@pytest.mark.parametrize("width", [70, 90, 120])
def test_the_terminal_table_is_aligned_and_fits(width):
    text = terminal_table(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7]), width=width)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= max(width, 75)
    rule = table[1]
    for line in table[2:]:
        assert all(line[at] == " " for at in range(len(line)) if rule[at] == " " and at < len(line))
    assert all(part in table[0] for part in ("gate", "test accuracy", "difference", "p", "solved"))


def test_the_terminal_ends_with_words():
    text = terminal_table(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, "diverged", 0.7]))
    assert text.startswith(f"{QUESTION}\n\n")
    assert "More seeds may tell: --seeds 0..5" in text
    assert text.endswith("! none, seed 1: diverged at step 120.\n")


def test_the_terminal_says_how_to_read_the_columns_that_it_shows():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0])
    narrow, wide = (terminal_table(*given, width=width).split("\n\n")[2] for width in (80, 200))
    for words in ("mean ± standard deviation (seeds), a diverged run is 0", "p: paired t test, Holm", "0.99 or more"):
        assert words in " ".join(narrow.split())
    assert "state: floats" not in narrow
    assert "state: size in floats, fixed + cached" in wide
    assert max(map(len, narrow.splitlines())) <= 80


def test_a_wide_terminal_shows_what_a_narrow_one_leaves_out():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0])
    narrow, wide = terminal_table(*given, width=80), terminal_table(*given, width=200)
    assert "tokens/s" not in narrow.splitlines()[2]
    assert "hidden columns: 95 % interval, state, steps to 99 %, tokens/s, s/run; see table.md" in " ".join(
        narrow.split()
    )
    assert "tokens/s" in wide.splitlines()[2]
    assert "left out" not in wide


def test_a_key_that_means_nothing_in_a_row_is_a_dash():
    plan = make_plan([{AGGREGATE: "grm", SEGMENT: 8}, {AGGREGATE: "none"}], seeds=range(3))
    text = terminal_table(plan, store(plan, [[0.5] * 3] * 2).get)
    assert text.splitlines()[5].split()[:2] == ["none", "–"]


def test_a_long_name_is_cut_in_the_terminal_alone():
    name = "a row with a name that goes on for a good while"
    plan = make_plan([{}], seeds=range(3), names=[name], named=True)
    lookup = store(plan, [[0.5] * 3]).get
    assert name not in terminal_table(plan, lookup)
    assert "a row with a name that goes" in terminal_table(plan, lookup)
    assert name in markdown(summarise(plan, lookup))

"""The table of a grid whose seeds are added until every row is told."""

from dataclasses import replace

import pytest

from mclab.config.outcome import ALL
from mclab.plan.seeds import Until
from mclab.report.prose.advice import commands
from mclab.report.prose.verdict import verdict
from mclab.report.sequential import gap_of, needed, seeds_to_tell
from mclab.report.table.columns import shown_columns
from mclab.report.table.frames import cells_of
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_of
from mclab.report.write import markdown
from tests.report.plans import gates, mapped

RULE = Until(looks=(4, 8), shares=(0.02, 0.03), even=0.02, step=1e-4)
BASE = [0.80, 0.81, 0.79, 0.80, 0.82, 0.80, 0.81, 0.79]
FAR = [0.60, 0.62, 0.58, 0.60, None, None, None, None]
CLOSE = [value + gap for value, gap in zip(BASE, [0.09, -0.04, 0.08, -0.02, 0.07, 0.02, -0.03, 0.06], strict=True)]
SCORES = {ALL: {"any value": 0.2}, "pairs=4": {"any value": 0.3}, "pairs=8": {"any value": 0.1}}


def table(*results, **more):
    plan, lookup = gates(*results, until=replace(RULE, **more.pop("rule", {})), **more)
    known = {name: lookup(name) for cell in plan.cells for name in cell.candidates[0].run_ids().values()}
    found = {name: record for name, record in known.items() if record}
    return summarise(plan, mapped(plan, found, lambda old: {"without_recall": SCORES}))


def column(summary, head):
    (found,) = [each.texts for each in shown_columns(summary) if each.head == head]
    return found


def test_a_row_stands_as_it_did_at_its_last_look():
    summary = table(BASE, FAR, CLOSE)
    assert column(summary, "look") == ("–", "1 of 2", "2 of 2")
    assert column(summary, "p")[0] == "–"
    assert column(summary, "p")[1].endswith("≤ 0.02")
    assert column(summary, "p")[2].endswith("> 0.03")
    gap = gap_of([row - base for row, base in zip(CLOSE, BASE, strict=True)], 0.03, 1e-4)
    about, safe = seeds_to_tell(gap, 0.03, 2)
    assert about == pytest.approx(needed(gap.mean / gap.std * 0.888, 0.015), abs=1)  # Hedges' factor of eight pairs
    assert column(summary, "verdict") == ("–", "told worse", f"open: about {about} seeds, {safe} to be safe")
    assert "status" not in [each.head for each in shown_columns(summary)]
    frame = cells_of(summary)
    assert frame["look"].to_list() == [None, 4, 8]
    assert frame["share"].to_list() == [None, 0.02, 0.03]
    assert frame["verdict"].to_list() == [None, "worse", "open"]
    assert frame["seeds_to_tell"].to_list() == [None, None, about]
    assert (frame["diff_lo"][2], frame["diff_hi"][2]) == pytest.approx((gap.lo, gap.hi))


def test_the_interval_is_wider_than_one_that_ignores_the_looks():
    (_, ours), (_, plain) = table(BASE, CLOSE).rows, summarise(*gates(BASE, CLOSE)).rows
    assert ours.difference.lo < plain.difference.lo < plain.difference.hi < ours.difference.hi


def test_it_says_in_words_what_is_told_and_what_is_left():
    lines = verdict(table(BASE, FAR, CLOSE))
    assert lines[0].startswith("input is told below context, by 0.200")
    assert any(line.startswith("none is open after 8 seeds: about") for line in lines)
    assert any("a new experiment, with other seeds and more looks" in line for line in lines)
    half = verdict(table(BASE, FAR, [*CLOSE[:6], None, None]))
    assert "The look at 8 seeds is under way; the same command continues with it." in half
    assert verdict(table(BASE, [value + 0.001 * (-1) ** n for n, value in enumerate(BASE)]))[0] == (
        "input is even with context: the difference is within 0.02 (by two t tests)."
    )


def test_before_the_first_look_nothing_is_said():
    summary = table(BASE[:3] + [None] * 5, FAR[:3] + [None] * 5)
    assert column(summary, "verdict") == ("–", "open: no look yet")
    assert column(summary, "difference") == ("baseline", "no look yet")
    assert summary.rows[1].p is None


def test_a_sequential_grid_is_not_told_to_add_seeds():
    assert commands(table(BASE, FAR, CLOSE), "mclab ablate --grid g.yaml") == []


def test_a_row_at_chance_gets_no_verdict():
    guesses = [0.19, 0.21, 0.2, 0.22, None, None, None, None]
    summary = table(BASE, guesses)
    assert column(summary, "verdict") == ("–", "no verdict: at chance")
    assert column(summary, "first mend") == ("–", "at chance")
    assert column(summary, "test accuracy")[1] == "0.205 ± 0.013 (4, 4 did not learn)"
    assert not any("told" in line for line in verdict(summary))
    lines = commands(summary, "mclab ablate --grid g.yaml")
    assert lines[0] == "train longer: mclab ablate --grid g.yaml --out runs/gating-longer train.steps=1200"
    assert lines[1].startswith("choose the learning rate")


def test_unplanned_looks_are_told_first():
    for rule in (None, RULE):
        plan, lookup = gates(BASE, CLOSE, until=rule, looked=(5, 8))
        summary = summarise(plan, lookup)
        assert verdict(summary)[0].startswith("Unplanned look, p not corrected:")
        assert "results of 5 and 8 seeds were there to be seen" in verdict(summary)[0]
        assert "Unplanned look, p not corrected" in " ".join(markdown(summary).split())
    assert not any("Unplanned" in line for line in verdict(summarise(*gates(BASE, CLOSE))))


def test_page_and_terminal_say_how_it_looked():
    summary = table(BASE, FAR, CLOSE)
    page = markdown(summary)
    assert "4 seeds 2 %, 8 seeds 3 %" in page
    assert "covers at least 96 % a row" in page
    assert "not ranked among each other" in page
    text = " ".join(terminal_of(summary, 200).split())
    assert "against the part of the 5 % error that the look may spend" in text

"""Guards: what must be mended in a row before it gets a verdict, and what is advised first."""

from dataclasses import replace

import pytest

from mclab.config.outcome import ALL
from mclab.plan.plan import Given
from mclab.report.prose.advice import commands
from mclab.report.prose.verdict import verdict
from mclab.report.table.columns import shown_columns
from mclab.report.table.frames import cells_of
from mclab.report.table.summary import summarise
from tests.report.plans import gates, make_plan, mapped, store

AGAIN = "mclab ablate --grid ablations/gating.yaml"
SCORES = {ALL: {"any value": 0.2, "latest value": 0.1}}
GOOD = [0.80, 0.81, 0.79, 0.80, 0.82]
MIXED = [0.9, 0.2, 0.21, 0.19, 0.92]


def measured(plan, lookup):
    names = [name for cell in plan.cells for each in cell.candidates for name in each.run_ids().values()]
    found = {name: record for name in names if (record := lookup(name))}
    return plan, mapped(plan, found, lambda old: {"without_recall": SCORES})


def curve(*values, steps=600):
    """Looks at equal distances, the last at the last step."""
    return [{"step": steps * (n + 1) // len(values), "valid": {ALL: {"accuracy": v}}} for n, v in enumerate(values)]


def marks(*results, looks=None):
    plan, lookup = measured(*gates(*results))
    return [row.marks for row in summarise(plan, lookup, None if looks is None else lambda name: looks).rows]


def test_few_runs_started():
    assert marks(GOOD, MIXED) == [(), ("few runs started",)]
    assert marks(GOOD, [0.9, 0.9, 0.21, 0.19, 0.92]) == [(), ()]
    summary = summarise(*measured(*gates(GOOD, MIXED)))
    assert [row.not_learned for row in summary.rows] == [0, 3]
    assert cells_of(summary)["did_not_learn"].to_list() == [0, 3]
    assert cells_of(summary)["marks"].to_list() == ["", "few runs started"]
    (accuracy,) = [each.texts for each in shown_columns(summary) if each.head == "test accuracy"]
    assert accuracy[1].endswith("(5, 3 did not learn)")


def test_learning_starts_with_the_first_look_above_what_needs_no_recall():
    """Steps 200, 300, 200 and twice never: the median is 300; where most never start there is none."""
    plan, lookup = measured(*gates(GOOD, MIXED))
    early, late = curve(0.2, 0.26, 0.5, 0.6, 0.7, 0.8), curve(0.2, 0.2, 0.26, 0.6, 0.7, 0.8)
    never = curve(0.2, 0.24, 0.25, 0.25, 0.24, 0.2)  # 0.05 above 0.2 and no more
    (first, second) = plan.cells
    looks = dict(zip(first.candidates[0].run_ids().values(), [early, late, early, never, never], strict=True))
    looks |= dict(zip(second.candidates[0].run_ids().values(), [early, never, early, never, never], strict=True))
    summary = summarise(plan, lookup, looks.__getitem__)
    assert [row.starts for row in summary.rows] == [300, None]
    assert cells_of(summary)["starts"].to_list() == [300, None]
    (shown,) = [each.texts for each in shown_columns(summary) if each.head == "starts"]
    assert shown == ("300", "–")


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        (curve(0.2, 0.4, 0.5, 0.6, 0.7), ("still improving",)),
        (curve(0.2, 0.4, 0.6, 0.79, 0.80), ()),
        (curve(0.2, 0.4, 0.5, 0.7, 0.6), ()),
        (curve(0.2, 0.4, 0.5, 0.6, 0.7, steps=300), ()),  # stopped early, for it was good enough
        (curve(0.7), ()),
        ([], ()),
    ],
)
def test_still_improving_is_a_rise_in_the_last_fifth_of_the_steps(looks, found):
    assert marks(GOOD, GOOD[::-1], looks=looks) == [found, found]


def test_a_row_that_solves_the_task_cannot_improve():
    assert marks([0.999] * 5, looks=curve(0.2, 0.4, 0.5, 0.6, 0.7)) == [()]


def test_records_from_before_the_baselines_have_no_marks():
    plan, lookup = gates(GOOD, MIXED)
    assert [row.marks for row in summarise(plan, lookup, lambda name: curve(0.2, 0.4, 0.5, 0.6, 0.7)).rows] == [(), ()]


def test_a_marked_row_gets_no_verdict_and_the_others_do():
    lines = verdict(summarise(*measured(*gates(GOOD, MIXED, [0.5, 0.51, 0.5, 0.49, 0.52]))))
    assert lines[0] == (
        "input is of mostly runs that never started to learn: first more steps or another learning rate, then more "
        "seeds; until then nothing follows from it."
    )
    assert [line for line in lines if line.startswith("none is 0.3")]
    assert not any(line.startswith("input cannot be told") for line in lines)


def test_where_the_baseline_is_marked_no_row_gets_one():
    lines = verdict(summarise(*measured(*gates(MIXED, [0.5, 0.51, 0.5, 0.49, 0.52]))))
    assert any(line.startswith("No verdict on input, since context must be mended first") for line in lines)
    assert len(lines) == 2


def test_a_value_at_the_edge_of_its_range():
    cells, over = [{"model.dim": 16}, {"model.dim": 24}], tuple({"train.lr": rate} for rate in (0.001, 0.01, 0.1))
    plan = make_plan(cells, over=over)
    records = {}
    for place, accuracy in enumerate((0.3, 0.5, 0.7)):
        records |= store(plan, [[value - 0.8 + accuracy for value in GOOD]] * 2, place)
    summary = summarise(*measured(plan, records.get))
    assert [row.marks for row in summary.rows] == [("edge of range",)] * 2
    assert "at the edge of its range: first a wider range, then more seeds" in verdict(summary)[0]
    assert commands(summary, AGAIN)[0].startswith("widen the range")
    assert not any("--seeds 0..9" in line for line in commands(summary, AGAIN))


def test_twelve_cells_at_chance_are_told_to_take_more_steps_and_another_rate_and_no_seeds():
    plan = make_plan([{"model.dim": 8 * n} for n in range(1, 13)])
    guesses = [[0.2 + 0.01 * ((seed * 7 + cell) % 5 - 2) for seed in range(5)] for cell in range(12)]
    summary = summarise(*measured(plan, store(plan, guesses).get))
    assert {row.marks for row in summary.rows} == {("at chance",)}
    lines = commands(summary, AGAIN)
    assert lines == [
        f"train longer: {AGAIN} --out runs/gating-longer --seeds 0..4 train.steps=1200",
        "choose the learning rate, in the grid: select: {over: {train.lr: [0.003, 0.01, 0.03]}, seeds: 2}",
        f"and then: {AGAIN} --seeds 0..4 --extend",
    ]
    words = verdict(summary)
    assert "first more steps or another learning rate, then more seeds" in words[0]
    assert not any("More seeds may tell" in line or "cannot be told" in line for line in words)


def test_longer_is_longer_than_the_grid_and_not_than_a_short_try():
    """The grid has 600 steps, the command line had made them 50."""
    plan, lookup = gates(
        [0.2, 0.21, 0.19], base={"train.steps": 50}, given=Given("g.yaml", ("train.steps=50",), steps=600)
    )
    lines = commands(summarise(*measured(plan, lookup)), f"{AGAIN} train.steps=50")
    assert lines[0] == f"train longer: {AGAIN} --out runs/gating-longer --seeds 0..2 train.steps=1200"
    more = replace(plan, given=Given("g.yaml", steps=20))
    assert commands(summarise(*measured(more, lookup)), AGAIN)[0].endswith("train.steps=100")

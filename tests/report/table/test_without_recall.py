"""The baseline without recall: in tables, below slices, in notes and advice, in plots; and old records without it."""

from dataclasses import replace

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import ALL
from mclab.config.parse import parse_run
from mclab.plan.plan import Candidate, Cell, Plan
from mclab.report.plot.kinds import figure_of
from mclab.report.prose.advice import commands
from mclab.report.prose.notes import alarms, notes
from mclab.report.prose.verdict import verdict
from mclab.report.stats import exceeds
from mclab.report.table.accuracy import Best
from mclab.report.table.columns import shown_columns, slice_columns
from mclab.report.table.frames import cells_frame, cells_of
from mclab.report.table.summary import summarise
from mclab.report.table.tex import tex
from mclab.report.terminal import terminal_of
from mclab.report.write import markdown, table_files
from tests.report.plans import GATE, gates, make_plan, mapped, record, store
from tests.stored import with_metrics

AGAIN = "mclab ablate --grid ablations/gating.yaml"
#: Two predictors on two slices; "latest value" is the better on all and on the second.
SCORES = {
    ALL: {"bigram": 0.1, "latest value": 0.2},
    "pairs=4": {"bigram": 0.18, "latest value": 0.15},
    "pairs=8": {"bigram": 0.02, "latest value": 0.25},
}
GUESSES, LEARNED = [0.19, 0.21, 0.2, 0.22, 0.18], [0.5, 0.6, 0.55, 0.62, 0.58]


def measured(*results, scores=SCORES, **more):
    plan, lookup = gates(*results, **more)
    records = {name: lookup(name) for cell in plan.cells for name in cell.candidates[0].run_ids().values()}
    known = {name: record for name, record in records.items() if record}
    return plan, mapped(plan, known, lambda old: {"without_recall": scores if old.status != "failed" else None})


def column(columns, head):
    (found,) = [each.texts for each in columns if each.head == head]
    return found


@pytest.mark.parametrize(
    ("gaps", "above"),
    [
        ([0.1, 0.2, 0.3], True),
        ([-0.1, -0.2, -0.3], False),
        ([0.1, 0.2, -0.1], False),  # t = 0.76
        ([0.06, 0.3, 0.3], False),  # t = 2.75, below the 2.92 of two degrees of freedom
        ([0.1, 0.3, 0.3], True),  # t = 3.5: one-sided p is 0.036, two-sided it would be 0.073
        ([0.1], True),
        ([0.1, -0.2], False),
        ([0.1, 0.1, 0.1], True),
        ([0.0, 0.0, 0.0], False),
        ([], False),
    ],
)
def test_above_is_a_one_sided_test_and_the_sign_where_there_is_none(gaps, above):
    assert exceeds(gaps) is above


def test_the_best_predictor_on_each_slice_and_the_cells_that_are_not_above_it():
    summary = summarise(*measured(LEARNED, GUESSES))
    found = summary.rows[0].without_recall
    latest = "latest value"
    assert found.best == {ALL: Best(latest, 0.2), "pairs=4": Best("bigram", 0.18), "pairs=8": Best(latest, 0.25)}
    assert column(shown_columns(summary), "without recall") == ("0.200", "0.200 (not above)")
    frame = cells_of(summary)
    assert frame["without_recall"].to_list() == [0.2, 0.2]
    assert frame["without_recall_by"].to_list() == [latest, latest]
    assert frame["above_without_recall"].to_list() == [True, False]
    assert frame["without_recall[pairs=4]"].to_list() == [0.18, 0.18]
    page = markdown(summary)
    assert "| without recall |             0.200 |             0.180 |             0.250 |" in page
    assert "- The best without recall: latest value (the mean and pairs=8); bigram (pairs=4)." in page
    assert "- Not above a predictor that does not recall: input." in page
    assert "without recall & 0.200 & 0.180 & 0.250" in " ".join(tex(summary).split())


def test_each_seed_is_compared_with_its_own_test():
    """Accuracies vary, and what can be had without recall varies with them: 0.02 above it on every seed."""
    results = [0.3, 0.4, 0.5, 0.6]
    plan, lookup = gates(results)
    names = plan.cells[0].candidates[0].run_ids()
    own = {names[seed]: {ALL: {"bigram": value - 0.02 - 0.001 * seed}} for seed, value in enumerate(results)}
    (row,) = summarise(plan, lambda name: replace(lookup(name), without_recall=own[name])).rows
    assert row.without_recall.above
    (row,) = summarise(plan, lambda name: replace(lookup(name), without_recall={ALL: {"bigram": 0.43}})).rows
    assert not row.without_recall.above


def test_on_a_slice_that_says_which_value_it_is_right_by_construction():
    given = {**SCORES, "pairs=4": {"latest value": 1.0}}
    lines = notes(summarise(*measured(LEARNED, scores=given)))
    assert any(line.startswith("On pairs=4 it is right by construction") for line in lines)
    assert not any("by construction" in line for line in notes(summarise(*measured(LEARNED))))


def test_records_from_before_it_was_stored_give_the_table_of_then_and_the_terminal_says_so():
    plan, lookup = gates(LEARNED, GUESSES)
    files = table_files(plan, lookup)
    assert not any(b"recall" in content for name, content in files.items() if not name.endswith("parquet"))
    text = terminal_of(summarise(plan, lookup))
    assert "no baseline without recall: these records are from before it was stored" in text
    assert "no baseline without recall" not in terminal_of(summarise(*measured(LEARNED)))


def test_rows_with_and_without_it_in_one_table():
    plan, lookup = measured(LEARNED, GUESSES)
    old = set(plan.cells[1].candidates[0].run_ids().values())
    one = min(old)
    for without in (old, {one}):
        summary = summarise(plan, lambda name, without=without: replace(lookup(name), without_recall=None)
                            if name in without else lookup(name))  # fmt: skip
        assert column(shown_columns(summary), "without recall") == ("0.200", "–")
        assert cells_of(summary)["above_without_recall"].to_list() == [True, None]
        assert any(line.startswith("No baseline without recall in: input.") for line in alarms(summary))
        assert not any("does not recall" in line for line in verdict(summary))


def test_tasks_have_lines_of_their_own_below_the_slices():
    cells = [{"task.pairs": mix, GATE: gate} for mix in ([4, 8], [2, 3]) for gate in ("context", "none")]
    plan = make_plan(cells, seeds=range(3))
    other = {ALL: {"any value": 0.4}, "pairs=2": {"any value": 0.5}, "pairs=3": {"any value": 0.3}}
    late = {run_id(run) for cell in plan.cells[2:] for run in cell.candidates[0].runs.values()}
    records = store(plan, [[0.9, 0.8, 0.7]] * 4)
    lookup = {name: replace(old, without_recall=other if name in late else SCORES) for name, old in records.items()}.get
    columns = slice_columns(summarise(plan, lookup))
    assert column(columns, "pairs")[4:] == ("4,8", "2,3")
    assert column(columns, "gate")[4:] == ("without recall", "without recall")
    assert column(columns, "all")[4:] == ("0.200", "0.400")
    assert column(columns, "pairs=2")[4:] == ("–", "0.500")
    assert len({len(each.texts) for each in columns}) == 1


def test_before_more_seeds_come_more_steps_and_the_learning_rate():
    summary = summarise(*measured(GUESSES, [0.2, 0.19, 0.23, 0.17, 0.2]))
    (line,) = [line for line in verdict(summary) if "does not recall" in line]
    assert line.startswith("context and input are not above a predictor that does not recall: first more steps")
    lines = commands(summary, AGAIN)
    assert lines == [
        f"train longer: {AGAIN} --out runs/gating-longer --seeds 0..4 train.steps=1200",
        "choose the learning rate, in the grid: select: {over: {train.lr: [0.003, 0.01, 0.03]}, seeds: 2}",
        f"and then: {AGAIN} --seeds 0..4 --extend",
    ]
    assert not any("More seeds may tell" in line for line in verdict(summary))


def test_seeds_are_still_asked_for_where_rows_recall():
    lines = commands(summarise(*measured([0.5, 0.6, 0.7], [0.6, 0.5, 0.8], [0.2, 0.1, 0.2])), AGAIN)
    heads = [line.partition(":")[0] for line in lines]
    assert heads == ["train longer", "choose the learning rate, in the grid", "and then", "add seeds"]


def test_what_the_command_holds_already_is_not_said_twice():
    summary = summarise(*measured(GUESSES))
    again = f"{AGAIN} train.steps=600 --out runs/mine"
    assert commands(summary, again)[0] == (
        f"train longer: {AGAIN} --out runs/mine-longer --seeds 0..4 train.steps=1200"
    )
    cells = [{GATE: "context", "train.steps": steps} for steps in (100, 200)]
    plan = make_plan(cells, seeds=range(3), over=({"train.lr": 0.01}, {"train.lr": 0.02}))
    records = store(plan, [[0.1, 0.2, 0.1]] * 2) | store(plan, [[0.1, 0.1, 0.1]] * 2, 1)
    lookup = mapped(plan, records, lambda old: {"without_recall": SCORES})
    assert not any(line.startswith(("train longer", "choose")) for line in commands(summarise(plan, lookup), AGAIN))


def test_a_row_that_diverged_is_told_for_that_alone():
    summary = summarise(*measured(LEARNED[:3], ["diverged"] * 3))
    assert cells_of(summary)["above_without_recall"].to_list() == [True, False]
    assert not any("does not recall" in line for line in [*verdict(summary), *notes(summary)])


def test_single_values_stand_beside_whole_answers_where_there_are_several():
    task = {"name": "niah", "preset": "mv", "length": 96}
    runs = {seed: parse_run({"task": task, "seed": seed}) for seed in range(3)}
    plan = Plan("mv", None, (), (Cell("mv", {}, (Candidate({}, runs),)),), None, tuple(runs))
    old = {run_id(run): record(run, 0.5) for run in runs.values()}
    new = {
        name: replace(
            each, test={part: with_metrics(s, value_accuracy=0.75, values_found=0.5) for part, s in each.test.items()}
        )
        for name, each in old.items()
    }
    frame = cells_frame(plan, new.get)
    assert frame["test_value_accuracy_mean"].to_list() == [0.75]
    assert frame["test_value_accuracy[depth=0]_mean"].to_list() == [0.75]
    shown = shown_columns(summarise(plan, new.get))
    assert column(shown, "value accuracy") == ("0.750 ± 0.000 (3)",)
    assert column(shown, "values found") == ("0.500 ± 0.000 (3)",)
    assert not any("value_accuracy" in name for name in cells_frame(plan, old.get).columns)


def dotted(axis):
    return [line for line in axis.lines if line.get_linestyle() == ":"]


def test_plots_have_it_as_a_dotted_line():
    summary = summarise(*measured(LEARNED, GUESSES))
    whole, first, second = figure_of(summary, "points").axes
    for axis, level in ((whole, 0.2), (first, 0.18), (second, 0.25)):
        (line,) = dotted(axis)
        assert list(line.get_xdata())[::3] == list(line.get_xdata())[1::3] == [level, level]
        assert list(line.get_ydata())[::3] == [-0.5, 0.5]
    (axis,) = figure_of(summary, "slices").axes
    (line,) = dotted(axis)
    assert list(line.get_ydata()) == [0.18, 0.25]
    foot = " ".join(text.get_text() for text in figure_of(summary, "points").texts)
    assert "Dotted: the best predictor without recall (0.180 to 0.250), where in view." in " ".join(foot.split())
    plan, lookup = gates(LEARNED, GUESSES)
    for kind in ("points", "slices"):
        assert not any(dotted(axis) for axis in figure_of(summarise(plan, lookup), kind).axes)


def test_a_line_along_a_numeric_key_has_it_across_the_panel():
    plan = make_plan([{"model.mixer.segment": segment} for segment in (2, 4, 8)], seeds=range(3))
    lookup = mapped(plan, store(plan, [[0.5, 0.6, 0.7]] * 3), lambda old: {"without_recall": SCORES})
    axes = figure_of(summarise(plan, lookup), "accuracy").axes
    levels = [[round(level, 9) for line in dotted(axis) for level in set(line.get_ydata())] for axis in axes]
    assert levels == [[0.2], [0.18], [0.25]]


def test_a_row_below_the_line_is_drawn_with_the_line_in_view():
    summary = summarise(*measured([0.01, 0.02, 0.03], scores={**SCORES, ALL: {"bigram": 0.6}}))
    whole, *_ = figure_of(summary, "points").axes
    low, high = whole.get_xlim()
    assert low < 0.6 < high

"""What a sweep found, as tables: best trials, levels, importances, the front, and every way to have nothing to say."""

import polars as pl
import pytest

from mclab.plan.space_trials import SpaceAxis, Trials
from mclab.report.sweeps.levels import levels_of
from mclab.report.sweeps.study import Study, status_lines
from mclab.report.sweeps.tables import terminal_text
from mclab.report.sweeps.write import write_tables
from tests.report.sweeps.trials import FRONT, GATE, LR, SEVERAL, K, study, trial, weights


def lines(found: Trials, width: int = 120) -> list[str]:
    return terminal_text(found, width).splitlines()


def test_the_best_distinct_trials_come_first_with_their_score_on_test():
    shown = lines(study(*SEVERAL, importances=weights(lr=0.7, gate=0.3)))
    assert shown[2] == "the 4 best of 4 distinct trials, highest valid accuracy first"
    head, *rows = [shown[4], *shown[6:10]]
    assert head.split("  ")[0] == "trial"
    assert [row.split() for row in rows] == [
        ["0", "0.01", "context", "2", "0.900", "0.450", "8,176", "9"],
        ["2", "0.099", "context", "–", "0.800", "0.400", "8,176", "9"],
        ["1", "0.003", "input", "–", "0.700", "0.350", "8,176", "9"],
        ["3", "0.02", "null", "–", "0.500", "0.250", "8,176", "9"],
    ]


def test_what_went_wrong_is_named():
    text = terminal_text(study(*SEVERAL, importances=weights(gate=1.0)))
    assert (
        "7 of 7 trials: 5 done, 1 diverged, 1 failed; 1 of those done repeat a point that was measured before." in text
    )
    assert "Trial 4: diverged at step 7." in text
    assert "Trial 6: failed (out of luck)." in text
    assert "In the best trial" not in text


@pytest.mark.parametrize(("lr", "edge"), [(0.001, True), (0.0012, True), (0.002, False), (0.09, True), (0.05, False)])
def test_a_best_value_at_an_end_of_its_range_is_named(lr: float, edge: bool):
    found = study(trial(0, 0.9, {"lr": lr}), trial(1, 0.1, {"lr": 0.01}))
    assert (
        "In the best trial lr is at an end of the range: a better value may be beyond it." in terminal_text(found)
    ) == edge


def test_levels_of_a_range_are_parts_of_equal_width_in_its_scale():
    found = study(*SEVERAL)
    labels = ["0.001 to 0.00251", "0.00251 to 0.00631", "0.00631 to 0.0158", "0.0158 to 0.0398", "0.0398 to 0.1"]
    levels = levels_of(found, LR)
    assert [level.label for level in levels] == labels
    assert [[each.number for each in level.trials] for level in levels] == [[], [1], [0], [3], [2]]
    assert [level.lost for level in levels] == [0, 0, 0, 1, 1]


def test_every_value_of_a_narrow_range_is_a_level():
    for axis, labels in (
        (SpaceAxis("d", "float", low=0.0, high=0.3, step=0.1), ["0", "0.1", "0.2", "0.3"]),
        (SpaceAxis("d", "int", low=2, high=2), ["2"]),
        (SpaceAxis("d", "float", low=0.5, high=0.5), ["0.5"]),
        (SpaceAxis("d", "int", low=2, high=8, step=3), ["2", "5", "8"]),
        (SpaceAxis("d", "float", low=1000.0, high=1000.5), [f"1000.{a} to 1000.{a + 1}" for a in range(1, 5)]),
    ):
        found = [level.label for level in levels_of(study(axes=(axis,)), axis)]
        assert found[-len(labels) :] == labels, axis


def test_trials_without_the_axis_and_those_where_it_changes_nothing_stand_apart():
    levels = levels_of(study(*SEVERAL), K)
    assert [(level.label, level.there, [each.number for each in level.trials]) for level in levels] == [
        ("1", True, []),
        ("2", True, [0]),
        ("3", True, []),
        ("–", False, [1, 2, 3]),
    ]


def test_a_level_is_a_mean_with_its_interval():
    context = levels_of(study(*SEVERAL), GATE)[0].objective(0)
    assert (context.n, context.mean) == (2, pytest.approx(0.85))
    assert context.hi == pytest.approx(
        0.85 + 12.7062 * 0.05, abs=1e-4
    )  # t of one degree of freedom, std / sqrt(2) = 0.05


def test_files_hold_numbers_alone_and_are_the_same_twice(tmp_path):
    found = study(*SEVERAL, importances=weights(lr=0.7, gate=0.3))
    paths = write_tables(found, tmp_path / "tables")
    names = ["sweep.md", "trials.csv", "trials.parquet", "importances.csv", "marginals.csv"]
    assert [path.name for path in paths] == names
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in write_tables(found, tmp_path / "again")]
    trials = pl.read_parquet(paths[2])
    assert trials["trial"].to_list() == list(range(7))
    assert trials["k"].to_list() == [2, None, None, None, None, 2, None]
    assert trials["valid_accuracy"].to_list() == [0.9, 0.7, 0.8, 0.5, None, 0.9, None]
    assert trials["repeat_of"].to_list() == [None] * 5 + [0, None]
    assert pl.read_csv(paths[3]).to_dicts()[0] == {"axis": "train.lr", "valid_accuracy": 0.7}
    marginals = pl.read_csv(paths[4])
    row = marginals.filter((pl.col("axis") == "model.mixer.gate") & (pl.col("value") == "input")).to_dicts()
    assert [(each["n"], each["not_done"], each["valid_accuracy_mean"]) for each in row] == [(1, 2, 0.7)]
    page = paths[0].read_text()
    assert page.startswith("# What matters?\n\nThe 4 best of 4")
    assert "PED-ANOVA" in page
    assert "means over seeds 0, 1" in page


def test_two_objectives_show_the_front(tmp_path):
    found = study(*FRONT, two=True)
    text = terminal_text(found)
    assert "the front: maximize valid accuracy and minimize state, 3 of 4 distinct trials" in text
    assert pl.read_csv(write_tables(found, tmp_path)[-1])["trial"].to_list() == [1, 0, 3]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (study(), "0 of 0 trials: none yet."),
        (study(trial(0, "running", {"lr": 0.01})), "0 of 1 trials: 1 running."),
        (study(trial(0, 0.5, {"lr": 0.01})), "1 of 1 trials: 1 done."),
        (study(*(trial(n, "oom", {"lr": 0.01}) for n in range(9))), "5 more trials: oom; see trials.csv."),
        (study(trial(0, "failed", {}), two=True), "No trial is done, so there is nothing to rank."),
        (
            study(*(trial(n, 0.5, {"lr": 0.01, "gate": "input"}) for n in range(3))),
            "valid accuracy is the same in every trial, so no axis can matter for it.",
        ),
        (
            study(*(trial(n, n / 9, {"gate": "input"}) for n in range(3)), axes=(GATE,)),
            "Nothing is known of axes that had one value only: gate.",
        ),
        (
            study(*SEVERAL, importances=weights(gate=float("nan"), lr=float("nan"), k=float("nan"))),
            "Importances are not known: there are too few trials, or all trials are alike.",
        ),
    ],
)
def test_where_there_is_nothing_to_say_a_line_says_so(found: Trials, said: str, tmp_path):
    assert said in terminal_text(found)
    assert said in write_tables(found, tmp_path)[0].read_text()
    assert "nan" not in terminal_text(found)


def test_a_narrow_terminal_leaves_columns_out_and_says_so():
    shown = lines(study(*SEVERAL, importances=weights(gate=1.0)), 60)
    assert "hidden columns: params, state; see sweep.md" in shown


def test_points_that_were_refused_say_why_once_for_each_reason():
    error = "model.mixer.gate: soup mixes weights"
    refused = [trial(number, "refused", {"gate": None}, error=error) for number in (7, 8)]
    lines = status_lines(
        Study(study(*SEVERAL, *refused, trial(9, "refused", {"gate": None}, error="model.pattern: names no mixer")))
    )
    assert f"2 points were left out because their keys contradict each other ({error})." in lines
    assert "1 point was left out because its keys contradict each other (model.pattern: names no mixer)." in lines

"""What a sweep says of how far its importances can be trusted, and of trials that were pruned."""

import polars as pl
import pytest

from mclab.plan.space_trials import Resampled, Trials
from mclab.report.sweeps.levels import levels_of
from mclab.report.sweeps.plots import figures_of
from mclab.report.sweeps.study import Study
from mclab.report.sweeps.tables import terminal_text
from mclab.report.sweeps.trust import trust
from mclab.report.sweeps.write import write_tables
from tests.report.sweeps.trials import GATE, LR, K, study, trial, weights

CHANCE = 0.147


def curve(end: float, last: int = 1000) -> dict[int, float]:
    """Looks of a run that rises evenly up to a step, of 1000."""
    return {step: end * step / 1000 for step in range(100, last + 1, 100)}


def pruned_study() -> Trials:
    """Two of six were stopped at step 200, where the others were as well."""
    done = [trial(n, 0.5 + n / 10, {"gate": "context", "lr": 0.01}) for n in range(4)]
    gone = [trial(n, "pruned", {"gate": "input", "lr": 0.05}) for n in (4, 5)]
    looks = {n: curve(0.5 + n / 10) for n in range(4)} | {n: curve(0.2, 200) for n in (4, 5)}
    return study(*done, *gone, looks=looks, importances=weights(gate=0.9, lr=0.1))


def said(found: Trials) -> str:
    return " ".join(trust(Study(found)))


def test_twelve_trials_at_chance_are_told_to_learn_first():
    found = study(*(trial(n, CHANCE + n / 500, {"lr": 0.01}) for n in range(12)), without_recall=CHANCE)
    text = said(found)
    assert "Importances mean nothing yet: 0 of 12 trials are clearly above 0.147" in text
    assert "First more steps (train.steps=...) or another range of train.lr" in text
    assert "train.steps=2000" in said(Trials(**{**vars(found), "looks": {0: curve(CHANCE)}}))
    assert "a range of train.lr in the space" in said(Trials(**{**vars(found), "axes": (GATE, K)}))
    assert "Importances are not known: there are too few trials" not in terminal_text(
        found
    )  # one reason is enough, and it is this


def test_trials_that_recall_are_believed():
    found = study(*(trial(n, 0.5 + n / 50, {"lr": 0.01}) for n in range(12)), without_recall=CHANCE)
    assert "mean nothing" not in said(found)
    assert "begun" not in said(found)
    some = study(*(trial(n, 0.9 if n < 5 else 0.1, {"lr": 0.01}) for n in range(12)), without_recall=CHANCE)
    assert "5 of 12 trials are clearly above 0.147" in said(some)


def test_pruned_trials_stand_in_means_at_the_step_that_all_came_to(tmp_path):
    found = pruned_study()
    levels = {level.label: level for level in levels_of(found, GATE)}
    assert [(levels[name].objective(0).n, levels[name].pruned) for name in ("context", "input")] == [(4, 0), (2, 2)]
    assert levels["input"].objective(0).mean == pytest.approx(0.2 * 0.2)
    assert levels["context"].objective(0).mean == pytest.approx(0.2 * 0.65)
    text = terminal_text(found)
    assert "of 6 distinct trials at step 200" in text
    page = write_tables(found, tmp_path)[0].read_text()
    assert "valid accuracy at step 200" in page
    assert "| pruned |" in page
    rows = pl.read_csv(tmp_path / "marginals.csv").filter(pl.col("value") == "input").to_dicts()
    assert [(row["n"], row["step"], row["pruned"]) for row in rows] == [(2, 200, 2)]
    trials = pl.read_csv(tmp_path / "trials.csv").filter(pl.col("status") == "pruned").to_dicts()
    assert [(row["last_step"], row["last_look"]) for row in trials] == [(200, pytest.approx(0.04))] * 2


def test_pruned_trials_are_in_the_plots():
    (axes,) = (each for each in figures_of(Study(pruned_study()))["contour"]().axes if each.get_label() != "<colorbar>")
    assert sorted(text.get_text() for text in axes.texts) == ["0.040 (2)", "0.130 (4)"]
    marginals = figures_of(Study(pruned_study()))["marginals"]().axes[0]
    assert marginals.get_xlabel() == "valid accuracy at step 200"


def test_pruned_trials_of_which_no_evaluation_is_known_are_left_out_and_that_is_said():
    found = Trials(**{**vars(pruned_study()), "looks": {}})
    assert "2 trials were pruned and left out" in said(found)
    assert levels_of(found, GATE)[1].lost == 2


def test_few_trials_say_how_many_would_do():
    found = study(*(trial(n, n / 9, {"lr": 0.01}) for n in range(9)), importances=weights(lr=1.0), good=1 / 3)
    assert "Importances rest on 9 trials, fewer than they can bear: with 45" in said(found)
    assert "--trials 45" in said(found)
    enough = study(*(trial(n, n / 45, {"lr": 0.01}) for n in range(45)), importances=weights(lr=1.0), good=1 / 3)
    assert "fewer than they can bear" not in said(enough)


@pytest.mark.parametrize(
    ("first", "words"), [(0.97, "lr matters most"), (0.6, "is not known which axis matters most: lr in 60%")]
)
def test_an_axis_is_called_first_where_resamples_agree(first: float, words: str):
    doubts = {LR.path: Resampled(0.2, 0.9, first), GATE.path: Resampled(0.0, 0.4, 1 - first)}
    found = study(
        *(trial(n, n / 9, {"lr": 0.01}) for n in range(9)),
        importances=weights(lr=0.7, gate=0.3), resampled={"valid.accuracy": doubts}, good=1 / 3,
        other=weights(gate=0.9, lr=0.1),
    )  # fmt: skip
    text = terminal_text(found, 200)
    assert words in text
    assert "[0.20, 0.90]" in text
    assert "Optuna's default" in text
    assert "puts gate first" in text


def test_trials_that_were_still_improving_are_named():
    looks = {n: curve(0.5) for n in range(6)}
    found = study(*(trial(n, 0.5, {"lr": 0.01}) for n in range(6)), looks=looks)
    assert "in 6 of the 6 best trials valid accuracy rose by more than 0.02 over the last 20%" in said(found)
    flat = {n: {step: min(0.5, value * 2) for step, value in curve(0.5).items()} for n in range(6)}
    assert "Still improving" not in said(Trials(**{**vars(found), "looks": flat}))


def test_numbers_of_trials_are_read_back(tmp_path):
    from mclab.plan.space_trials import as_dict, from_dict

    found = pruned_study()
    assert from_dict(as_dict(found)) == found

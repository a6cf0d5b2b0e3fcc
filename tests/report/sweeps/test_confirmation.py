"""Search and confirmation side by side: a verdict a choice, and whether the two agree."""

import pytest

from mclab.report.sweeps.confirmation import confirmed, page, text, verdict_lines
from mclab.report.sweeps.study import Study
from mclab.report.table.summary import summarise
from tests.report.plans import make_plan as plan_of
from tests.report.plans import mapped, store
from tests.report.sweeps.trials import GATE, LR, study, trial, weights

NAMES = ("best", "gate=input", "gate=none", "lr=0.003")
AXES = {"gate=input": GATE.path, "gate=none": GATE.path, "lr=0.003": LR.path}
NOISE = (0.00, 0.03, 0.01, 0.02, 0.04)


def both(gate_input: float, gate_none: float, slower: float, change=None, **shares: float):
    """A search with these shares, and five seeds of each row at these accuracies."""
    best = trial(0, 0.9, {"gate": "context", "lr": 0.01})
    found = study(best, trial(1, 0.5, {"gate": "input", "lr": 0.01}), importances=weights(**shares))
    settings = [
        {GATE.path: "context"},
        {GATE.path: "input"},
        {GATE.path: "none"},
        {GATE.path: "context", LR.path: 0.003},
    ]
    plan = plan_of(settings, names=NAMES, named=True)
    rows = [
        [mean + (-1) ** seed * NOISE[(seed + place) % 5] for seed in range(5)]
        for place, mean in enumerate((0.8, gate_input, gate_none, slower))
    ]
    records = store(plan, rows)
    lookup = mapped(plan, records, change) if change else records.get
    return confirmed(Study(found), best, summarise(plan, lookup), AXES.get, ("k=9: too large",))


def test_a_choice_whose_other_values_are_worse_is_confirmed():
    lines = verdict_lines(both(0.5, 0.79, 0.8, gate=0.9, lr=0.1))
    assert lines[0].startswith("gate=context is confirmed: input by 0.3")
    assert "none cannot be told from it" in lines[0]
    assert lines[1] == "lr=0.01 is open: 0.003 cannot be told from it."
    assert any(line.startswith("Search and confirmation agree on what matters most: gate") for line in lines)
    assert lines[-1] == "Not tried, because the keys contradict each other: k=9: too large"


def test_a_choice_that_is_beaten_is_refuted_and_ranks_that_differ_are_named():
    lines = verdict_lines(both(0.95, 0.4, 0.8, gate=0.1, lr=0.9))
    assert lines[0].startswith("lr=0.01 is open")
    assert lines[1].startswith("gate=context is refuted: input by 0.1")
    assert any("The search ranks lr first; at the best point gate (-0." in line for line in lines)


def test_where_nothing_is_told_apart_nothing_is_confirmed():
    lines = verdict_lines(both(0.8, 0.79, 0.8, gate=0.9, lr=0.1))
    assert "No choice is told apart at the best point: what the search ranks is not confirmed, nor refuted." in lines


def test_runs_at_chance_get_no_verdict():
    chance = {part: {"any value": 0.99} for part in ("all", "pairs=4", "pairs=8")}
    lines = verdict_lines(both(0.5, 0.79, 0.8, lambda record: {"without_recall": chance}, gate=0.9))
    assert lines[0].startswith("gate=context: no verdict until runs are mended (at chance): more steps")


@pytest.mark.parametrize("show", [text, page])
def test_importance_and_difference_stand_in_one_row(show):
    shown = show(both(0.5, 0.79, 0.8, gate=0.9, lr=0.1))
    row = next(line for line in shown.splitlines() if "gate=context" in line and " input" in line)
    assert "0.90" in row
    assert "-0.3" in row
    assert "worse" in row

"""What to do next: commands and lines that can be pasted."""

import pytest

from mclab.plan.grid import plan_from
from mclab.plan.loader import parse_value
from mclab.report.prose.advice import commands, wants_seeds, wider
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from tests.report.plans import GATE, SEGMENT, gates, make_plan, store

AGAIN = "mclab ablate --grid ablations/gating.yaml"
UNCLEAR = ([0.5, 0.6, 0.7], [0.6, 0.5, 0.8])


def chosen(path, values, best):
    """A summary in which every row chose the candidate at place `best`."""
    plan = make_plan([{GATE: "context"}], seeds=range(2), over=tuple({path: value} for value in values))
    records = {}
    for place in range(len(values)):
        records |= store(plan, [[0.9 if place == best else 0.5] * 2], place)
    return summarise(plan, records.get)


def test_rows_that_cannot_be_told_apart_end_with_the_command():
    text = terminal_table(*gates(*UNCLEAR), again=AGAIN)
    assert text.endswith(f"\nadd seeds: {AGAIN} --seeds 0..5\n")
    assert "More seeds may tell" not in text


def test_a_long_command_is_not_broken():
    again = f"{AGAIN} {'train.steps=50 ' * 20}".strip()
    assert f"\nadd seeds: {again} --seeds 0..5\n" in terminal_table(*gates(*UNCLEAR), width=80, again=again)


def test_a_settled_table_suggests_nothing():
    settled = gates([0.90, 0.91, 0.92, 0.93, 0.94], [0.74, 0.76, 0.75, 0.77, 0.78])
    assert commands(summarise(*settled), AGAIN) == []
    assert not wants_seeds(summarise(*gates([1.0, 1.0, 0.995], [1.0, 0.995, 1.0])))
    assert not wants_seeds(summarise(*gates(["diverged"] * 3, [0.1, 0.5, 0.2])))


@pytest.mark.parametrize(
    ("path", "values", "best", "wanted"),
    [
        ("train.lr", [1e-3, 1e-2, 1e-1], 2, [1e-3, 1e-2, 1e-1, 1.0]),
        ("train.lr", [3e-3, 1e-2, 3e-2], 0, [9e-4, 3e-3, 1e-2, 3e-2]),
        (SEGMENT, [4, 8, 16], 2, [4, 8, 16, 32]),
        (SEGMENT, [1, 2, 4], 0, [1, 2, 4]),
        ("train.weight_decay", [0.0, 0.1, 0.2], 2, [0.0, 0.1, 0.2, 0.4]),
        ("train.weight_decay", [0.0, 0.1, 0.2], 0, [0.0, 0.1, 0.2]),
    ],
)
def test_a_value_at_the_edge_widens_the_range_by_its_own_step(path, values, best, wanted):
    line = wider(chosen(path, values, best))
    name, _, text = line.partition(": ")
    select = parse_value(text)
    assert (name, select) == ("select", {"over": {path: wanted}, "by": "valid.accuracy", "seeds": 2})
    plan = plan_from({"select": select, "seeds": [0, 1]}, "wider")
    assert [candidate.values[path] for candidate in plan.cells[0].candidates] == wanted


def test_a_wider_range_comes_with_the_command_that_takes_it():
    lines = commands(chosen("train.lr", [1e-3, 1e-2, 1e-1], 2), AGAIN)
    assert lines[0].startswith("widen the range, in the grid: select: {over: {train.lr: [0.001, 0.01, 0.1, 1]}")
    assert lines[1] == f"and then: {AGAIN} --seeds 0,1 --extend"

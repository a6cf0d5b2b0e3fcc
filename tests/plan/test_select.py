"""Which candidate a cell reports, and what a plan still needs."""

from itertools import product
from math import inf, nan
from typing import Any

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.plan.plan import Candidate, Cell, Plan
from mclab.plan.select import choose, edges, runs_needed
from tests.plan.conftest import Fault, Make
from tests.stored import score, stored_run

Records = dict[str, StoredRun]
DIVERGED, PRUNED, OOM = stored_run(status="diverged"), stored_run(status="pruned"), stored_run(status="oom")
FAILED = stored_run(status="failed", error="x")


def done(accuracy: float, loss: float | None = 1.0) -> StoredRun:
    return stored_run(valid={ALL: score(accuracy, loss)})


def stored(cell: Cell, *by_candidate: list[Any]) -> Records:
    """Records of a cell's candidates by seed; `None` leaves one out."""
    found: Records = {}
    for candidate, records in zip(cell.candidates, by_candidate, strict=True):
        for name, record in zip(candidate.run_ids().values(), records, strict=False):
            if record is not None:
                found[name] = record
    return found


def picked(plan: Plan, *by_candidate: list[Any]) -> Any:
    winner = choose(plan, plan.cells[0], stored(plan.cells[0], *by_candidate).get)
    return None if winner is None else winner.values


@pytest.fixture
def two(plan: Make) -> Plan:
    return plan("select: {over: {train.lr: [1e-2, 1e-3]}, seeds: 2}\nseeds: 0..3")


HIGH, LOW = {"train.lr": 0.01}, {"train.lr": 0.001}


@pytest.mark.parametrize(
    ("high", "low", "winner"),
    [
        ([done(0.9), done(0.7)], [done(0.7), done(0.8)], HIGH),
        ([done(0.9), done(0.5)], [done(0.7), done(0.8)], LOW),
        ([done(0.5, 1.0), done(0.7, 2.0)], [done(0.6, 1.0), done(0.6, 1.5)], LOW),
        ([done(0.5, 1.0), done(0.7, 1.0)], [done(0.7, 1.5), done(0.5, 1.5)], HIGH),
        ([done(0.6, 1.0), done(0.6, 1.0)], [done(0.6, 1.0), done(0.6, 1.0)], LOW),
        ([DIVERGED, done(1.0)], [done(0.6), done(0.5)], LOW),
        ([DIVERGED, done(1.0)], [done(0.4), done(0.5)], HIGH),
        ([DIVERGED, DIVERGED], [done(0.0, 9.0), done(0.0, 9.0)], LOW),
        ([done(0.0, 9.0), done(0.0, 9.0)], [DIVERGED, DIVERGED], HIGH),
        ([DIVERGED] * 2, [DIVERGED] * 2, LOW),
        ([PRUNED, done(0.9)], [done(0.5), done(0.5)], LOW),
        ([done(0.6, nan), done(0.6, 0.1)], [done(0.6, 5.0), done(0.6, 5.0)], LOW),
        ([done(0.6, None), done(0.6, 0.1)], [done(0.6, 5.0), done(0.6, 5.0)], LOW),
        ([done(0.6, inf)] * 2, [done(0.6, 5.0)] * 2, LOW),
    ],
)
def test_the_best_mean_then_the_lower_loss_then_the_smaller_value(two: Plan, high: Any, low: Any, winner: Any):
    assert picked(two, high, low) == winner


def test_only_the_first_seeds_count(two: Plan):
    assert (
        picked(two, [done(0.6), done(0.6), done(0.0), done(0.0)], [done(0.5), done(0.5), done(1.0), done(1.0)]) == HIGH
    )


@pytest.mark.parametrize("gap", [None, FAILED, OOM])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("place", [0, 1])
def test_no_choice_while_a_record_is_missing_or_not_final(two: Plan, gap: Any, seed: int, place: int):
    rows: list[list[Any]] = [[done(0.5), done(0.5)], [done(0.6), done(0.6)]]
    rows[place][seed] = gap
    assert picked(two, *rows) is None


def test_a_cell_whose_candidates_all_failed_chooses_nothing(two: Plan):
    assert picked(two, [FAILED] * 4, [OOM] * 4) is None


def test_without_candidates_there_is_nothing_to_wait_for(plan: Make):
    alone = plan("seeds: 0..1")
    assert choose(alone, alone.cells[0], {}.get) is alone.cells[0].candidates[0]
    merged = plan("base: {model.mixer.gate: none}\nselect: {over: {model.mixer.k: [1, 2]}}")
    assert len(merged.cells[0].candidates) == 1
    assert choose(merged, merged.cells[0], {}.get) is merged.cells[0].candidates[0]


def test_by_loss(plan: Make):
    by_loss = plan("select: {over: {train.lr: [1e-2, 1e-3]}, by: valid.loss, seeds: 1}")
    assert picked(by_loss, [done(0.9, 2.0)], [done(0.1, 1.0)]) == LOW
    assert picked(by_loss, [done(0.9, 1.0)], [done(0.1, 1.0)]) == HIGH
    assert picked(by_loss, [DIVERGED], [done(0.1, 50.0)]) == LOW


def test_a_mean_does_not_depend_on_the_order_of_its_seeds(plan: Make):
    ten = plan("select: {over: {train.lr: [1e-2, 1e-3]}, seeds: 3}\nseeds: 0..2")
    for scores in ((0.1, 0.2, 0.3), (0.3, 0.1, 0.2), (0.7, 0.1, 0.1)):
        rows = [[done(value) for value in order] for order in (scores, scores[::-1])]
        assert picked(ten, *rows) == LOW


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("train.steps: [20, 3, 100]", {"train.steps": 3}),
        ("model.mixer.gate: [input, context]", {"model.mixer.gate": "input"}),
        ("model.mixer.qk_norm: [true, false]", {"model.mixer.qk_norm": True}),
        ("train.lr: [1.0, 0.5], train.batch: [8, 4]", {"train.lr": 0.5, "train.batch": 4}),
    ],
)
def test_ties_go_to_the_smaller_number_and_the_first_word(plan: Make, over: str, expected: dict[str, Any]):
    found = plan(f"select: {{over: {{{over}}}, seeds: 1}}")
    assert picked(found, *[[done(0.5)]] * len(found.cells[0].candidates)) == expected


@pytest.mark.parametrize(
    ("over", "marked"),
    [
        ("train.lr: [1e-3, 1e-2]", []),
        ("train.lr: [1e-3, 3e-3, 1e-2]", [0.001, 0.01]),
        ("train.lr: [1e-2, 1e-3, 3e-3]", [0.01, 0.001]),
        ("model.mixer.gate: [context, input, none]", []),
    ],
)
def test_the_ends_of_a_range_are_marked_from_three_numbers_on(plan: Make, over: str, marked: list[Any]):
    (cell,) = plan(f"select: {{over: {{{over}}}}}").cells
    assert [next(iter(c.values.values())) for c in cell.candidates if any(edges(cell, c).values())] == marked


def test_edges_are_told_apart_by_key(plan: Make):
    (cell,) = plan("select: {over: {train.lr: [1.0, 2.0, 3.0], train.batch: [8, 16, 32, 64]}}").cells
    marks = {tuple(c.values.values()): edges(cell, c) for c in cell.candidates}
    for lr, batch in product((1.0, 2.0, 3.0), (8, 16, 32, 64)):
        assert marks[(lr, batch)] == {"train.lr": lr != 2.0, "train.batch": batch in (8, 64)}


def test_first_what_choosing_needs_then_the_winners_other_seeds(two: Plan):
    records: Records = {}

    def finish(runs: list[RunConfig], best: float) -> None:
        for run in runs:
            records[run_id(run)] = done(0.9 if run.train.lr == best else 0.5)

    first = runs_needed(two, records.get)
    assert [(run.train.lr, run.seed) for run in first] == [(lr, seed) for lr in (0.01, 0.001) for seed in (0, 1)]
    finish(first[:-1], 0.001)
    assert runs_needed(two, records.get) == first
    finish(first, 0.001)
    both = runs_needed(two, records.get)
    assert both[:4] == first
    assert [(run.train.lr, run.seed) for run in both[4:]] == [(0.001, 2), (0.001, 3)]
    finish(both, 0.001)
    assert runs_needed(two, records.get) == both


def test_each_cell_goes_on_by_itself(plan: Make):
    found = plan("grid: {model.dim: [16, 32]}\nselect: {over: {train.lr: [1.0, 2.0]}, seeds: 1}\nseeds: 0..1")
    records = stored(found.cells[1], [done(0.5)], [done(0.6)])
    needed = runs_needed(found, records.get)
    assert [(r.model.dim, r.train.lr, r.seed) for r in needed] == [
        (16, 1.0, 0),
        (16, 2.0, 0),
        (32, 1.0, 0),
        (32, 2.0, 0),
        (32, 2.0, 1),
    ]


def test_a_run_that_two_cells_share_is_needed_once(plan: Make):
    found = plan("grid: {model.mixer.aggregate: [grm, residual]}\nselect: {over: {model.mixer.gate: [context, none]}}")
    assert len(runs_needed(found, {}.get)) == 2


def test_without_select_every_seed_is_needed(plan: Make):
    found = plan("grid: {model.dim: [16, 32]}\nseeds: 0..2")
    assert [(r.model.dim, r.seed) for r in runs_needed(found, {}.get)] == [(d, s) for d in (16, 32) for s in range(3)]


def test_a_stored_candidate_goes_by_its_stored_ids():
    run = RunConfig()
    assert Candidate({}, {0: run}).run_ids() == {0: run_id(run)}
    assert Candidate({}, {0: run}, {0: "as stored"}).run_ids() == {0: "as stored"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "select: must be a mapping with over, by and seeds, got 3"),
        ("{}", "select.over: this block is empty; list values to choose from, e.g. {train.lr: [1e-3, 1e-2]}"),
        ("{over: {}}", "select.over: this block is empty; list values to choose from, e.g. {train.lr: [1e-3, 1e-2]}"),
        ("{over: {train.lr: []}}", "select.over: train.lr: must have at least one value, got []"),
        ("{over: [a]}", "select.over: must be a mapping of keys to lists, got [a]"),
        (
            "{over: {model.mixer: [{}]}}",
            "select.over: model.mixer: this is a mapping of keys; choose among the values of one key",
        ),
        *(
            (
                f"{{over: {{{path}: [{values}]}}}}",
                (
                    f"select.over: {path}: this key changes the test, so that every cell would choose the easiest "
                    "test; vary it under grid"
                ),
            )
            for path, values in (("task.pairs", "4, 8"), ("task.name", "mqar"), ("task", "{}"), ("eval.test", "8, 16"))
        ),
        (
            "{over: {train.lr: [1.0]}, by: test.accuracy}",
            'select.by: must be valid.accuracy or valid.loss, got "test.accuracy"; '
            "test is for the table, so choose on valid",
        ),
        (
            "{over: {train.lr: [1.0]}, by: accuracy}",
            'select.by: must be valid.accuracy or valid.loss, got "accuracy"; did you mean valid.accuracy?',
        ),
        ("{over: {train.lr: [1.0]}, by: 3}", "select.by: must be valid.accuracy or valid.loss, got 3"),
        ("{over: {train.lr: [1.0]}, seeds: 0}", "select.seeds: must be a number of seeds, at least 1, got 0"),
        ("{over: {train.lr: [1.0]}, seeds: 0..1}", 'select.seeds: must be a number of seeds, at least 1, got "0..1"'),
        (
            "{over: {train.lr: [1.0]}, seeds: 4}",
            "select.seeds: the choice cannot be made on 4 seeds, because the grid has 3; take 3",
        ),
    ],
)
def test_a_wrong_select_is_a_line(fault: Fault, text: str, message: str):
    assert fault(f"seeds: 0..2\nselect: {text}") == f"g.yaml:2: {message}"


@pytest.mark.parametrize(
    "rows",
    [
        "grid: {train.lr: [1.0, 2.0]}",
        "zip: {train.lr: [1.0, 2.0]}",
        "runs: [{}, {train.lr: 2.0}]",
        "changes: {a: {}, b: {train: {lr: 2.0}}}",
        "grid: {train: [{lr: 1.0}]}",
    ],
)
def test_a_key_cannot_be_chosen_and_varied(fault: Fault, rows: str):
    message = fault(f"select: {{over: {{train.lr: [1.0, 2.0]}}}}\n{rows}")
    assert message == "g.yaml:1: select.over: train.lr: this key is varied as well (g.yaml:2); keep one"

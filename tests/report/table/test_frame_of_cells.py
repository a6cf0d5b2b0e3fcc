"""The frame of cells: its columns, and what stands in them."""

from math import sqrt

import polars as pl
import pytest

from mclab.config.ids import run_id
from mclab.report.table.frames import cells_frame
from tests.report.plans import AGGREGATE, GATE, SEGMENT, gates, make_plan, mapped, record, store

PARTS = ("mean", "std", "lo", "hi", "min", "max")
TAIL = ["diff_mean", "diff_lo", "diff_hi", "p", "ceiling", "params", "state_fixed", "state_cached", "steps_to_99"]
TAIL += ["tokens_per_s", "wall_s"]
ACCURACY = [f"test_accuracy{part}_{end}" for part in ("", "[pairs=4]", "[pairs=8]") for end in PARTS]
OVER = ({"train.lr": 1e-3}, {"train.lr": 1e-2}, {"train.lr": 1e-1})


def test_columns_exactly():
    frame = cells_frame(*gates([0.5] * 3, [0.6] * 3))
    assert frame.columns == ["gate", "n", "status", "solved", "lr", *ACCURACY, *TAIL]
    assert frame["gate"].to_list() == ["context", "input"]
    assert frame["lr"].to_list() == [1e-2, 1e-2]
    assert frame.schema["test_accuracy_mean"] == pl.Float64
    assert frame.schema["n"] == pl.Int64


def test_columns_with_a_choice():
    plan = make_plan([{GATE: "context"}, {GATE: "input"}], seeds=range(3), over=OVER)
    frame = cells_frame(plan, {}.get)
    assert frame.columns == ["gate", "n", "status", "solved", "lr", "lr_edge", *ACCURACY, *TAIL]


def test_columns_where_another_key_is_chosen():
    plan = make_plan([{GATE: "context"}], over=({"train.weight_decay": 0.0}, {"train.weight_decay": 0.1}))
    assert cells_frame(plan, {}.get).columns[4:7] == ["weight_decay", "weight_decay_edge", "lr"]


def test_a_varied_learning_rate_is_its_own_column():
    plan = make_plan([{"train.lr": 1e-3}, {"train.lr": 1e-2}])
    frame = cells_frame(plan, {}.get)
    assert frame.columns[:4] == ["lr", "n", "status", "solved"]
    assert frame["lr"].to_list() == [1e-3, 1e-2]


def test_clashing_last_words_take_their_paths():
    plan = make_plan(
        [{"train.lr": 1e-3, "model.mixer.name": "memory"}, {"train.lr": 1e-3, "model.mixer.name": "attention"}]
    )
    assert cells_frame(plan, {}.get).columns[:2] == ["lr", "model.mixer.name"]


def test_numbers_of_a_row():
    frame = cells_frame(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0]))
    row = frame.row(1, named=True)
    assert (row["n"], row["status"], row["solved"]) == (3, "3 done", 1)
    assert row["test_accuracy_mean"] == pytest.approx(0.8)
    assert row["test_accuracy_std"] == pytest.approx(0.2)
    assert (row["test_accuracy_min"], row["test_accuracy_max"]) == (0.6, 1.0)
    half = 4.303 * 0.2 / sqrt(3)
    assert row["test_accuracy_lo"] == pytest.approx(0.8 - half, abs=1e-3)
    assert row["test_accuracy_hi"] == 1.0  # clipped
    assert row["test_accuracy[pairs=8]_mean"] == pytest.approx(0.8)
    assert row["diff_mean"] == pytest.approx(0.2)
    assert row["p"] == pytest.approx(1 - 2 * sqrt(3) / sqrt(14))
    assert (row["params"], row["state_fixed"], row["state_cached"], row["wall_s"]) == (12345, 1024, 7168, 10.0)


def test_the_baseline_is_compared_with_nothing():
    row = cells_frame(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0])).row(0, named=True)
    assert [row[name] for name in ("diff_mean", "diff_lo", "diff_hi", "p", "ceiling")] == [None] * 5


def test_p_is_adjusted_over_the_rows():
    alone = cells_frame(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0]))["p"][1]
    both = cells_frame(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.5, 0.6, 0.75]))["p"]
    assert both[1] == pytest.approx(2 * alone)
    assert both[2] >= both[1]


def test_a_diverged_run_counts_as_zero():
    frame = cells_frame(*gates([0.5, 0.6, 0.7], [0.8, "diverged", 0.7]))
    row = frame.row(1, named=True)
    assert (row["n"], row["status"]) == (3, "2 done, 1 diverged")
    assert (row["test_accuracy_mean"], row["test_accuracy_min"]) == (pytest.approx(0.5), 0.0)
    assert row["test_accuracy[pairs=4]_min"] == 0.0
    assert row["diff_mean"] == pytest.approx((0.3 - 0.6 + 0.0) / 3)
    assert row["wall_s"] == 10.0


def test_missing_and_failed_runs_are_named_and_leave_the_pairs():
    frame = cells_frame(*gates([0.5, 0.6, 0.7, 0.8, 0.9], [0.6, None, "failed", 0.9, 0.9]))
    row = frame.row(1, named=True)
    assert (row["n"], row["status"]) == (3, "3 done, 1 failed, 1 missing")
    assert row["diff_mean"] == pytest.approx((0.1 + 0.1 + 0.0) / 3)


def test_nothing_stored():
    frame = cells_frame(gates([0.5] * 3, [0.5] * 3)[0], {}.get)
    assert frame["n"].to_list() == [0, 0]
    assert frame["status"].to_list() == ["3 missing"] * 2
    assert frame["test_accuracy_mean"].to_list() == [None, None]


def test_one_and_two_seeds():
    one = cells_frame(*gates([0.5], [0.6])).row(1, named=True)
    assert (one["test_accuracy_mean"], one["test_accuracy_std"], one["test_accuracy_lo"]) == (0.6, None, None)
    assert (one["diff_mean"], one["diff_lo"], one["p"]) == (pytest.approx(0.1), None, None)
    two = cells_frame(*gates([0.5, 0.6], [0.6, 0.8])).row(1, named=True)
    assert (two["test_accuracy_lo"], two["test_accuracy_hi"], two["p"]) == (0.0, 1.0, None)


def test_identical_and_constant_rows_have_no_p():
    frame = cells_frame(*gates([0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.4, 0.5, 0.6]))
    assert frame["p"].to_list() == [None, None, None]
    assert frame["diff_mean"].to_list() == [None, 0.0, pytest.approx(-0.1)]


def test_ceiling_needs_both():
    frame = cells_frame(*gates([0.99] * 3, [1.0] * 3, [0.98] * 3))
    assert frame["ceiling"].to_list() == [None, True, False]
    assert frame["solved"].to_list() == [3, 3, 0]


def test_the_chosen_candidate_is_reported_with_its_edge():
    plan = make_plan([{GATE: "context"}], seeds=range(3), over=OVER)
    records = store(plan, [[0.5, 0.5, None]], 0) | store(plan, [[0.6, 0.6, None]], 1) | store(plan, [[0.7] * 3], 2)
    row = cells_frame(plan, records.get).row(0, named=True)
    assert (row["lr"], row["lr_edge"], row["test_accuracy_mean"], row["n"]) == (0.1, True, pytest.approx(0.7), 3)
    records |= store(plan, [[0.9, 0.9, None]], 1)
    row = cells_frame(plan, records.get).row(0, named=True)
    assert (row["lr"], row["lr_edge"], row["status"]) == (0.01, False, "2 done, 1 missing")


def test_a_choice_that_waits_for_runs():
    plan = make_plan([{GATE: "context"}], seeds=range(3), over=OVER)
    row = cells_frame(plan, store(plan, [[0.5, 0.5, None]], 0).get).row(0, named=True)
    assert (row["n"], row["lr"], row["lr_edge"]) == (0, None, None)
    assert row["status"] == "choosing: 2 done, 4 missing"


def test_steps_to_99_is_a_median_with_the_late_ones_last():
    plan = gates([1.0, 1.0, 1.0], [1.0, 1.0, 0.5])[0]
    for reached, median in (([100, 300, None], 300), ([100, None, None], None), ([300, 200, 100], 200)):
        records = store(plan, [[1.0] * 3, [1.0] * 3])
        lookup = mapped(plan, records, lambda old, reached=reached: {"steps_to_99": reached[old.seed]})
        assert cells_frame(plan, lookup)["steps_to_99"].to_list() == [median, median]


def test_inert_keys_are_null_and_values_keep_their_type():
    cells = [{AGGREGATE: "grm", SEGMENT: 8}, {AGGREGATE: "grm", SEGMENT: 16}, {AGGREGATE: "none"}]
    frame = cells_frame(make_plan(cells), {}.get)
    assert frame["segment"].to_list() == [8, 16, None]
    assert frame.schema["segment"] == pl.Int64


def test_a_key_that_a_row_does_not_set_shows_what_its_run_has():
    frame = cells_frame(make_plan([{}, {GATE: "input"}, {AGGREGATE: "none"}]), {}.get)
    assert frame["gate"].to_list() == ["context", "input", None]
    assert frame["aggregate"].to_list() == ["grm", "grm", "none"]


def test_slices_are_the_union_in_the_order_of_their_numbers():
    plan = make_plan([{"task.pairs": [16]}, {"task.pairs": [2, 4]}], seeds=range(3))
    frame = cells_frame(plan, store(plan, [[0.5] * 3, [0.6, "diverged", 0.6]]).get)
    means = [name for name in frame.columns if name.endswith("]_mean")]
    assert means == [f"test_accuracy[pairs={pairs}]_mean" for pairs in (2, 4, 16)]
    assert frame["test_accuracy[pairs=16]_mean"].to_list() == [0.5, None]
    assert frame["pairs"].to_list() == ["16", "2,4"]


def test_rows_stand_as_the_plan_lists_them():
    plan = make_plan([{SEGMENT: size} for size in (16, 4, 8)])
    assert cells_frame(plan, {}.get)["segment"].to_list() == [16, 4, 8]


def test_a_record_beyond_the_plan_is_not_read():
    plan, lookup = gates([0.5] * 3, [0.6] * 3)
    asked = []
    cells_frame(plan, lambda key: asked.append(key) or lookup(key))
    assert set(asked) == {run_id(config) for config in plan.first_runs()}


def test_cost_is_the_mean_of_finished_runs():
    plan = gates([0.5] * 3)[0]
    configs = list(plan.cells[0].candidates[0].runs.values())
    records = {
        run_id(c): record(c, r, wall_s=w) for c, r, w in zip(configs, (0.5, "diverged", 0.5), (1, 90, 3), strict=True)
    }
    assert cells_frame(plan, records.get)["wall_s"].to_list() == [2.0]

"""The frame of runs."""

import polars as pl
import pytest

from mclab.report.table.frames import runs_frame
from tests.report.plans import GATE, gates, make_plan, store

OVER = ({"train.lr": 1e-3}, {"train.lr": 1e-2})


def test_columns_exactly():
    frame = runs_frame(*gates([0.5], [0.6]))
    slices = [
        f"{metric}{part}"
        for part in ("", "[pairs=4]", "[pairs=8]")
        for metric in ("test_accuracy", "test_loss", "valid_accuracy", "valid_loss")
    ]
    assert frame.columns == [
        *("run_id", "gate", "lr", "seed", "chosen", "status"),
        *slices,
        *("steps_done", "steps_to_99", "diverged_step", "overlap", "params", "state_fixed", "state_cached"),
        *("tokens_per_s", "wall_s", "science", "device", "device_name", "torch", "mclab", "error"),
    ]


def test_a_row_per_stored_run_in_the_plans_order():
    frame = runs_frame(*gates([0.5, None, 0.7], ["diverged", 0.6, "failed"]))
    assert frame["gate"].to_list() == ["context"] * 2 + ["input"] * 3
    assert frame["seed"].to_list() == [0, 2, 0, 1, 2]
    assert frame["status"].to_list() == ["done", "done", "diverged", "done", "failed"]
    assert frame["test_accuracy"].to_list() == [0.5, 0.7, 0.0, 0.6, None]
    assert frame["test_accuracy[pairs=8]"].to_list() == [0.5, 0.7, 0.0, 0.6, None]
    assert frame["test_loss"].to_list() == [0.5, pytest.approx(0.3), None, 0.4, None]
    assert frame["run_id"].n_unique() == 5


def test_candidates_and_which_was_chosen():
    plan = make_plan([{GATE: "context"}], seeds=range(3), over=OVER)
    frame = runs_frame(plan, (store(plan, [[0.5, 0.5, None]], 0) | store(plan, [[0.6] * 3], 1)).get)
    assert frame["lr"].to_list() == [1e-3] * 2 + [1e-2] * 3
    assert frame["chosen"].to_list() == [False] * 2 + [True] * 3


def test_its_mean_is_the_tables_mean():
    from mclab.report.table.frames import cells_frame

    plan, lookup = gates([0.5, 0.6, 0.7], [0.6, "diverged", 0.9])
    means = runs_frame(plan, lookup).group_by("gate", maintain_order=True).agg(pl.col("test_accuracy").mean())
    assert means["test_accuracy"].to_list() == pytest.approx(cells_frame(plan, lookup)["test_accuracy_mean"].to_list())


def test_nothing_stored():
    plan = gates([0.5])[0]
    frame = runs_frame(plan, {}.get)
    assert frame.height == 0
    assert frame.schema["seed"] == pl.Int64

"""Grid files that meant something else elsewhere, from the file to the plan and the table."""

from pathlib import Path

import polars as pl
import pytest

from tests.commands import fine, grid_file, records, with_grid


def test_every_way_to_write_a_number_is_one_run(here: Path) -> None:
    """yacs#46, confuse#91, LLaMA-Factory#4014."""
    grid_file(here, with_grid("grid: {train.lr: [1e-3, 1.0e-3, 0.001, 1E-3, 3E-4], train.clip: [1e+3]}"), "n.yaml")
    facts = fine("ablate", "--grid", "n.yaml", "--dry-run", "--json", "train.weight_decay=1e-1").json
    configs = [cell["candidates"][0]["config"] for cell in facts["cells"]]
    assert [(each["train.lr"], each["train.clip"], each["train.weight_decay"]) for each in configs] == [
        (0.001, 1000.0, 0.1), (0.0003, 1000.0, 0.1),
    ]  # fmt: skip
    ids = set()
    for value in ("1e-3", "1.0e-3", "0.001", "1E-3"):
        plan = fine("train", "--dry-run", "--json", f"train.lr={value}").json
        ids.add(plan["cells"][0]["candidates"][0]["runs"]["0"])
    assert len(ids) == 1


def test_paired_values_are_rows_and_no_product(here: Path) -> None:
    """wandb#3482, hydra#3082."""
    for text in (
        "zip: {task.length: [16, 32, 64], task.pairs: [2, 4, 8]}\n",
        "runs: [{task.length: 16}, {task.length: 32, task.pairs: 4}, {task.length: 64, task.pairs: 8}]\n",
    ):
        (here / "z.yaml").write_text(f"base: {{task: {{vocab: 64, pairs: 2}}}}\n{text}")
        assert len(fine("ablate", "--grid", "z.yaml", "--dry-run", "--json").json["cells"]) == 3


def test_cells_that_differ_in_nothing_are_one_and_said_to_be(here: Path) -> None:
    """wandb#2853, #1487: the connector means nothing to a gate that does not see the segment."""
    grid = "grid: {model.mixer.gate: [context, input, none], model.mixer.connector: [own, shared]}"
    grid_file(here, with_grid(grid), "g.yaml")
    done = fine("ablate", "--grid", "g.yaml", "--dry-run")
    assert "6 cells, 4 distinct: gate=input, connector=shared is the same as gate=input, connector=own" in done.out
    assert "6 cells, 4 distinct; 8 runs; seeds 0, 1" in done.out


@pytest.mark.usefixtures("quick")
def test_what_stands_twice_runs_once_and_is_reported(here: Path) -> None:
    """syne-tune#560."""
    grid = "grid: {model.mixer.gate: [none, none, input], train.lr: [1e-3, 0.001]}"
    grid_file(here, with_grid(grid), "twice.yaml")
    done = fine("ablate", "--grid", "twice.yaml", "--workers", 1)
    assert len(records(here / "runs/twice")) == 4
    assert done.err.count("\n") >= 3
    assert all(word in done.err for word in ("gate", "lr", "none", "0.001"))


@pytest.mark.usefixtures("quick")
def test_seeds_are_rows_of_a_cell_and_no_axis(here: Path) -> None:
    """hydra#1476."""
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--seeds", "0..4")
    cells, runs = (pl.read_csv(here / f"runs/tiny/tables/{name}.csv") for name in ("table", "runs"))
    assert (cells["gate"].to_list(), cells["n"].to_list()) == (["context", "none"], [5, 5])
    assert "seed" not in cells.columns
    assert runs.group_by("gate", maintain_order=True).agg("seed")["seed"].to_list() == [[0, 1, 2, 3, 4]] * 2
    assert cells["test_accuracy_mean"].to_list() == pytest.approx(
        runs.group_by("gate", maintain_order=True).agg(pl.col("test_accuracy").mean())["test_accuracy"].to_list()
    )

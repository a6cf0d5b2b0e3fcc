"""Data, determinism and tables: what every shipped grid and every stored record must hold."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.commands import ROOT, SCRIPT, fine, grid_file, mclab, no_plots, one_line, records, snapshot, with_grid
from tests.stored import alter


@pytest.mark.parametrize("grid", sorted(path.name for path in (ROOT / "ablations").rglob("*.yaml")))
def test_every_shipped_grid_runs(here: Path, grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """zoology#31: an example that does not run, or not without a GPU. Two of them are drawn too: one axis, and two."""
    path = next((ROOT / "ablations").rglob(grid))
    drawn = grid in ("gating.yaml", "init.yaml")
    if not drawn:
        no_plots(monkeypatch)
    few = [] if "train.batch" in path.read_text() else ["train.batch=2"]  # what varies cannot be set
    smoke = ["--smoke", "--workers", 1, "--device", "cpu", *few, "eval.valid=1", "eval.test=1"]
    quick = ["--quick"] if "\nquick:" in path.read_text() else []
    done = fine("ablate", "--grid", path, *quick, *smoke, "--seeds", "0..1" if drawn else "0")
    plot = here / f"runs/{path.stem}{'-quick' if quick else ''}-smoke/plots/accuracy.png"
    assert plot.exists() == drawn
    assert not drawn or plot.stat().st_size > 10_000
    assert "done; 0 stored before" in done.err


def test_impossible_tasks_are_refused_with_the_rule_before_anything_is_written(here: Path) -> None:
    """zoology's bare asserts, mad-lab's numpy error."""
    before = snapshot(here)
    for given, message in (
        (
            "task.vocab=8 task.pairs=4",
            "4 pairs need 4 different keys, but vocab 8 has only 3; take vocab 10 or at most 3 pairs",
        ),
        (
            "task.pairs=17 task.length=64",
            "need 4 * 17 = 68 tokens, but length is 64; take length 68 or at most 16 pairs",
        ),
        ("task.length=63", "mqar needs an even length, got 63; take 64"),
        ("task.distractors=true", "true needs filler random, but filler is zero"),
        ("task.vocab=4 task.length=4 task.pairs=1", "smallest slice has only 2 different ones"),
        ("model.dim=30 model.heads=4", "heads"),
    ):
        one_line(mclab("train", *given.split()), message)
    assert snapshot(here) == before


#: What may differ, and the checksum over it.
UNCERTAIN = ("tokens_per_s", "wall_s", "provenance", "sha256")


def test_another_random_state_and_another_process_give_the_same_results(here: Path) -> None:
    """zoology's filler, RULER#81: records, curves and the plot equal bit for bit, timings left out."""
    import torch

    words = ["ablate", "--grid", "tiny.yaml", "--workers", 1, "--threads", 1, "--out"]
    torch.manual_seed(99)
    fine(*words, "one")
    environment = {**os.environ, "PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "2"}
    command = [SCRIPT, *map(str, words), "two"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    one, two = (
        {name: {key: value for key, value in record.items() if key not in UNCERTAIN} for name, record in kept.items()}
        for kept in (records(here / "one"), records(here / "two"))
    )
    assert one == two
    for file in ("plots/accuracy.png", "plots/accuracy.svg", *(f"curves/{name}.ndjson" for name in one)):
        assert (here / "one" / file).read_bytes() == (here / "two" / file).read_bytes(), file


def test_the_same_records_give_the_same_files_and_the_same_order(here: Path) -> None:
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1)
    first = snapshot(here / "runs/tiny")
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    subprocess.run([SCRIPT, "table", "runs/tiny"], env=environment, check=True, capture_output=True)
    fine("plot", "runs/tiny")
    assert snapshot(here / "runs/tiny") == first
    assert {"tables/table.csv", "tables/table.parquet", "tables/table.md", "plots/accuracy.png"} <= set(first)


@pytest.mark.usefixtures("quick")
def test_every_row_says_on_what_it_ran(here: Path) -> None:
    """pytorch#79496, #196613."""
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1)
    runs = pl.read_csv(here / "runs/tiny/tables/runs.csv")
    assert runs["device"].to_list() == ["cpu"] * 4
    assert None not in {*runs["torch"], *runs["device_name"], *runs["mclab"]}
    path = here / f"runs/tiny/records/{runs['run_id'][0]}.json"
    provenance = json.loads(path.read_text())["provenance"]
    alter(path, provenance={**provenance, "device_name": "NVIDIA H100"})
    assert "! Mixed devices: NVIDIA H100 (1 run)" in fine("table", "runs/tiny").out


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("length", [4, 18, 66, 126])
def test_lengths_off_every_block_train(here: Path, length: int) -> None:
    """flash-linear-attention#1142, #88: short sequences, and segments and chunks that end short."""
    grid = "grid: {model.mixer.segment: [1, 5, 7, 64], model.mixer.aggregate: [grm, ssc, none]}"
    sizes = [f"task.length={length}", "task.pairs=1", "task.spread=uniform", "eval.test=2", "eval.valid=2"]
    grid_file(here, with_grid(grid), "odd.yaml")
    done = fine("ablate", "--grid", "odd.yaml", "--workers", 1, "--seeds", "[0]", "train.steps=2", *sizes)
    assert "done; 0 stored before" in done.err
    assert all(record["test"]["all"]["loss"] > 0 for record in records(here / "runs/odd").values())

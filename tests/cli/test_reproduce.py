"""A published table again: the verb over a grid, its verdicts from stored runs, and what is wrong with a command."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.commands import ROOT, TINY, fine, grid_file, mclab, no_plots, one_line, records, snapshot
from tests.stored import alter

#: A run folder that stays as it was made.
STORED = ROOT / "tests/fixture/paper"
PAPER = """
paper:
  source: Somebody, table 5
  columns: {recall: {margin: 0.02}}
  rows:
    plain: {figures: [31.8]}
    GRM: {against: plain, figures: [40.5]}
"""
GRID = TINY.replace(
    "grid: {model.mixer.gate: [context, none]}", "changes: {plain: {model.mixer.aggregate: none}, GRM: {}}"
).replace("seeds: 0..1", "seeds: 0..2")
WORDS = ("reproduce", "five.yaml", "--workers", 1)


@pytest.fixture(autouse=True)
def grid(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    no_plots(monkeypatch)
    return grid_file(here, GRID + PAPER, "five.yaml")


def paper_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "tables").glob("paper.*")}


def test_it_runs_the_grid_and_writes_the_table_in_four_forms(here: Path) -> None:
    done = fine(*WORDS)
    assert "Somebody, table 5" in done.out
    assert "this command: 6 done; 0 stored before" in done.err
    assert set(paper_files(here / "runs/five")) == {"paper.md", "paper.csv", "paper.tex", "paper.parquet"}
    rows = fine(*WORDS, "--json").json
    assert [(row["row"], row["against"], row["paper_diff"]) for row in rows] == [
        ("plain", None, None),
        ("GRM", "plain", pytest.approx(8.7)),
    ]
    assert "2 done" in fine(*WORDS, "--seeds", "0..3").err
    assert fine("table", "runs/five").out.startswith("Does the gate matter?")


def test_kernels_are_chosen_as_for_any_grid(here: Path) -> None:
    one_line(mclab(*WORDS, "--kernels", "cuda"), "--kernels: 'cuda' is not auto, torch or triton")
    assert "--kernels triton: linear is computed with torch instead" in fine(*WORDS, "--kernels", "triton").err


def test_interrupted_and_resumed_it_gives_the_same_table(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mclab.store import Store

    fine(*WORDS, "--out", "whole")
    put, stored = Store.put, []

    def interrupted(self: Store, run: object, outcome: object) -> None:
        put(self, run, outcome)  # type: ignore[arg-type]
        stored.append(run)
        if len(stored) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "put", interrupted)
    stopped = mclab(*WORDS, "--out", "parts")
    assert stopped.code == 130
    assert "to continue: mclab reproduce five.yaml" in stopped.err
    assert not paper_files(here / "parts")
    monkeypatch.setattr(Store, "put", put)
    fine(*WORDS, "--out", "parts")
    assert paper_files(here / "parts") == paper_files(here / "whole")


def test_a_table_of_one_seed_says_that_no_test_was_made() -> None:
    done = fine(*WORDS, "--seeds", "0..0")
    assert "No test was made: 1 seed, and a test takes 3." in done.out


def test_a_dry_run_writes_nothing(here: Path) -> None:
    before = snapshot(here)
    assert "6 runs" in fine(*WORDS, "--dry-run").out
    assert snapshot(here) == before


def test_what_is_wrong_with_a_command_is_one_line(here: Path) -> None:
    one_line(mclab("reproduce", "table"), "table: this is neither the name of a published table", "table5")
    one_line(mclab("reproduce", "tiny.yaml"), "tiny.yaml: this grid has no paper block", "mclab ablate runs it")
    one_line(mclab(*WORDS, "--from-records"), "runs/five: there is no such run folder")
    fine(*WORDS)
    one_line(mclab(*WORDS, "--from-records", "train.steps=9"), "leave out train.steps=9")
    grid_file(here, GRID + PAPER, "six.yaml")
    one_line(
        mclab("reproduce", "six.yaml", "--from-records", "--out", "runs/five"),
        "runs/five: the folder holds five, not six",
    )
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1)
    words = ("reproduce", "six.yaml", "--from-records", "--out", "runs/tiny")
    one_line(mclab(*words), "runs/tiny/plan.json: this grid has no paper block")


def test_the_words_name_the_grids_that_ship() -> None:
    from mclab.verbs.reproduce import grid_of

    for word in ("table5", "table2", "fig5", "fig4"):
        assert grid_of(word).read_text().count("\npaper:") == 1


@pytest.fixture
def stored(here: Path) -> Path:
    """A copy of the stored folder, without its tables."""
    folder = here / "stored"
    shutil.copytree(STORED, folder)
    shutil.rmtree(folder / "tables")
    return folder


def again(folder: Path) -> None:
    fine("reproduce", STORED.with_suffix(".yaml"), "--from-records", "--out", folder)


def verdicts(folder: Path) -> dict[tuple[str, str, str], str]:
    table = pl.read_csv(folder / "tables/paper.csv").drop_nulls("against")
    return {(row["row"], row["against"], row["column"]): row["verdict"] for row in table.to_dicts()}


def test_stored_runs_give_the_stored_table_and_nothing_else_is_written(stored: Path) -> None:
    before = records(stored)
    again(stored)
    expected = pl.read_csv(STORED / "tables/paper.csv")
    found = pl.read_csv(stored / "tables/paper.csv")
    assert found.columns == expected.columns
    for name in expected.columns:
        for one, other in zip(found[name], expected[name], strict=True):
            assert one == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other)
    assert records(stored) == before
    assert {path.name for path in stored.iterdir()} == {path.name for path in STORED.iterdir()}


def test_another_accuracy_in_one_record_is_another_verdict(stored: Path) -> None:
    """Signed again it counts; with the old checksum it is damage, and its seed is in no pair."""
    again(stored)
    changed = {key for key, word in verdicts(stored).items() if word == "agrees"}
    assert changed, "the fixture has a row that agrees"
    row, against, column = min(changed)
    plan = json.loads((stored / "plan.json").read_text())
    cell = next(each for each in plan["cells"] if each["values"]["change"] == row)
    path = stored / "records" / f"{cell['candidates'][0]['runs']['0']}.json"
    test = json.loads(path.read_text())["test"]
    alter(
        path, test={part: {**score, "accuracy": 1.0 - score["accuracy"], "loss": 9.0} for part, score in test.items()}
    )
    again(stored)
    assert verdicts(stored)[row, against, column] != "agrees"

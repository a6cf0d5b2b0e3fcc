"""mclab ablate --dry-run: what would run, and how much work it is."""

from pathlib import Path

import pytest

from mclab.workers.cores import Processors
from tests.commands import BIG, fine, grid_file, snapshot


def test_a_dry_run_says_what_would_run_and_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.runner.time_range.processors", lambda: Processors(2, 2, 0.0))
    before = snapshot(here)
    assert fine("ablate", "--grid", "tiny.yaml", "--dry-run", "--seeds", "0..4", "--workers", "2").out == (
        "Does the gate matter?\n"
        "\n"
        "cell          parameters  state fixed  state cached\n"
        "gate=context         960          144           216\n"
        "gate=none            896          136           192\n"
        "\n"
        "2 cells, 2 distinct; 10 runs; seeds 0..4\n"
        "5,120 training tokens; none of the runs are stored in runs/tiny; "
        "about 7 s to 15 s on 2 CPU workers (a rough guess, as no runs are stored)\n"
        "roughly 251 MiB of memory for each process, 501 MiB for all 2 processes (Python and torch)\n"
    )
    assert snapshot(here) == before


def test_a_dry_run_for_programs_is_the_plan_with_sizes() -> None:
    facts = fine("ablate", "--grid", "tiny.yaml", "--dry-run", "--json").json
    assert (facts["runs"], facts["first_runs"], facts["stored"], facts["left"]) == (4, 4, 0, 4)
    assert (facts["tokens"], facts["out"], facts["seeds"]) == (4 * 4 * 8 * 16, "runs/tiny", [0, 1])
    assert [(cell["name"], cell["params"]) for cell in facts["cells"]] == [("gate=context", 960), ("gate=none", 896)]
    assert list(facts["cells"][0]["candidates"][0]["runs"]) == ["0", "1"]
    assert "lines" not in facts


def test_a_dry_run_counts_what_is_stored_and_sees_another_grid(finished: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--dry-run", "--out", finished)
    before = snapshot(finished)
    assert f"4 of the runs are stored in {finished}; nothing left to run" in fine(*words).out
    assert "4 of the runs are stored" in fine(*words, "--seeds", "0..2").out
    other = fine(*words, "model.dim=16").out
    assert (
        f"warning: {finished} holds another grid, compared with which this one is +2 −2 cells "
        "(model.dim 8 → 16); it needs --extend" in other
    )
    assert "warning" not in fine(*words, "model.dim=16", "--extend").out
    assert snapshot(finished) == before


def test_a_dry_run_of_hundreds_of_cells_can_be_read(here: Path) -> None:
    grid_file(here, BIG, "big.yaml")
    lines = fine("ablate", "--grid", "big.yaml", "--dry-run").out.splitlines()
    assert len(lines) < 50
    assert "… and 460 more cells; --json lists all" in lines
    assert "500 cells, 500 distinct; 3,500 runs, 2000 of them to choose train.lr; seeds 0..4" in lines
    assert len(fine("ablate", "--grid", "big.yaml", "--dry-run", "--json").json["cells"]) == 500


def test_what_all_cells_share_is_said_once(here: Path) -> None:
    text = "grid: {task: [{name: mqar, pairs: 4}], model.mixer.gate: [context, input]}"
    grid_file(here, text, "shared.yaml")
    lines = fine("ablate", "--grid", "shared.yaml", "--dry-run").out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["gate=context", "gate=input"]
    assert lines[3] == "in every cell: task=mqar pairs=4"


def test_smoke_goes_to_a_folder_of_its_own_and_says_so() -> None:
    done = fine("ablate", "--grid", "tiny.yaml", "--smoke", "--dry-run", "--seeds", "0..4")
    assert "smoke: two steps on small sets" in done.out
    assert "runs/tiny-smoke" in done.out


def test_the_grid_is_an_argument_or_an_option_and_overrides_stand_anywhere() -> None:
    as_option = fine("ablate", "--grid", "tiny.yaml", "--dry-run", "--json", "train.steps=3").out
    assert fine("ablate", "tiny.yaml", "train.steps=3", "--dry-run", "--json").out == as_option
    assert fine("ablate", "train.steps=3", "--dry-run", "tiny.yaml", "--json").out == as_option


def test_only_some_cells(here: Path, finished: Path) -> None:
    words = ("ablate", "tiny.yaml", "--only", "gate=none", "--dry-run")
    text = fine(*words).out
    assert "gate=none" in text
    assert "gate=context" not in text
    assert "--only gate=none: 1 of 2 cells\n1 cell, 1 distinct; 2 runs" in text
    whole = f"warning: {finished} holds another grid, compared with which this one is −1 cells; it needs --extend"
    assert whole in fine(*words, "--out", finished).out
    assert "2 of the runs are stored" in fine(*words, "--out", finished, "--extend").out

"""What a dry run, a table, a plot, a list, the keys and the help look like."""

import errno
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mclab.workers.cores import Processors
from tests.commands import (
    BIG,
    SCRIPT,
    TINY,
    VERBS,
    fine,
    grid_file,
    mclab,
    no_plots,
    one_line,
    records,
    snapshot,
    started,
)


def test_a_dry_run_says_what_would_run_and_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.runner.span.processors", lambda: Processors(2, 2, 0.0))
    before = snapshot(here)
    assert fine("ablate", "--grid", "tiny.yaml", "--dry-run", "--seeds", "0..4", "--workers", "2").out == (
        "Does the gate matter?\n"
        "\n"
        "cell          parameters  state fixed  state cached\n"
        "gate=context         960          144           216\n"
        "gate=none            896          136           192\n"
        "\n"
        "2 cells, 2 distinct; 10 runs; seeds 0..4\n"
        "5,120 training tokens; none of the runs stored in runs/tiny; "
        "about 7 s to 15 s on 2 CPU workers (no stored runs to go by)\n"
        "roughly 251 MiB of memory a process and 2 of them 501 MiB (Python and torch)\n"
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
    assert f"4 of the runs stored in {finished}; nothing left to run" in fine(*words).out
    assert "4 of the runs stored" in fine(*words, "--seeds", "0..2").out
    other = fine(*words, "model.dim=16").out
    assert (
        f"warning: {finished} holds another grid, this one is +2 −2 cells (model.dim 8 → 16): it wants --extend"
        in other
    )
    assert "warning" not in fine(*words, "model.dim=16", "--extend").out
    assert snapshot(finished) == before


def test_a_dry_run_of_hundreds_of_cells_can_be_read(here: Path) -> None:
    grid_file(here, BIG, "big.yaml")
    lines = fine("ablate", "--grid", "big.yaml", "--dry-run").out.splitlines()
    assert len(lines) < 50
    assert "… and 460 more cells; --json lists all" in lines
    assert "500 cells, 500 distinct; 3,500 runs, 2000 of them to choose train.lr by; seeds 0..4" in lines
    assert len(fine("ablate", "--grid", "big.yaml", "--dry-run", "--json").json["cells"]) == 500


def test_smoke_goes_to_a_folder_of_its_own_and_says_so() -> None:
    done = fine("ablate", "--grid", "tiny.yaml", "--smoke", "--dry-run", "--seeds", "0..4")
    assert "smoke: two steps on small sets" in done.out
    assert "runs/tiny-smoke" in done.out


def test_table_and_plot_again(finished: Path) -> None:
    printed = fine("table", finished)
    again = fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--out", finished)
    shown = [[line for line in done.out.splitlines() if "mclab ablate" not in line] for done in (printed, again)]
    assert shown[0] == shown[1]
    written = "table.csv, table.parquet, table.md, table.tex, runs.csv, runs.parquet"
    assert printed.err == f"wrote into {finished}/tables: {written}\n"
    assert [cell["gate"] for cell in fine("table", finished, "--json").json] == ["context", "none"]
    assert fine("plot", finished).out == f"{finished}/plots/accuracy.png\n{finished}/plots/accuracy.svg\n"
    assert fine("plot", finished, "--format", "pdf").out == f"{finished}/plots/accuracy.pdf\n"


def test_a_table_in_other_formats_is_the_file_of_that_name(finished: Path) -> None:
    for form in ("md", "tex", "csv"):
        assert fine("table", finished, "--format", form).out == (finished / f"tables/table.{form}").read_text()
    with started("table", finished, "--format", "parquet", folder=finished) as process:
        assert process.stdout is not None
        assert process.stdout.buffer.read() == (finished / "tables/table.parquet").read_bytes()
    assert fine("table", finished, "--format", "text").out == fine("table", finished).out
    one_line(
        mclab("table", finished, "--format", "latex"), "--format: 'latex' is not one of text, md, tex, csv, parquet"
    )
    one_line(mclab("table", finished, "--format", "md", "--json"), "keep one")


def test_the_table_ends_with_a_command_that_works_when_pasted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    monkeypatch.setattr("mclab.report.table.row.without_recall", lambda *_: None)  # nothing to recall, nothing to guess
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "train.steps=3", "eval.every=3")
    last = fine("table", "runs/tiny").out.splitlines()[-1]
    assert last == "add seeds: mclab ablate --grid tiny.yaml train.steps=3 eval.every=3 --seeds 0..4"
    done = fine(*shlex.split(last.partition(": ")[2])[1:], "--workers", 1)
    assert "this command: 6 done; 4 stored before" in done.err
    assert len(records(here / "runs/tiny")) == 10


def test_where_nothing_is_recalled_yet_the_table_ends_with_longer_training_and_learning_rates(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_plots(monkeypatch)
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "eval.every=3")
    longer, chosen, then = fine("table", "runs/tiny").out.splitlines()[-3:]
    done = fine(*shlex.split(longer.partition(": ")[2])[1:], "--workers", 1)
    assert "this command: 4 done; 0 stored before" in done.err
    assert {record["config"]["train.steps"] for record in records(here / "runs/tiny-longer").values()} == {8}
    grid_file(here, f"{TINY}{chosen.partition(': ')[2]}\n")
    done = fine(*shlex.split(then.partition(": ")[2])[1:], "--workers", 1)
    assert "this command: 8 done; 4 stored before" in done.err


def test_each_kind_of_plot_has_a_file_of_its_own(finished: Path) -> None:
    for kind in ("points", "curves", "slices", "capacity"):
        done = fine("plot", finished, "--kind", kind, "--format", "svg")
        assert done.out == f"{finished}/plots/{kind}.svg\n"
    one_line(mclab("plot", finished, "--kind", "heat"), "heat: the slices are no grid of depth", "eval.task")
    one_line(mclab("plot", finished, "--kind", "curve"), "did you mean curves?")


def test_a_plot_of_nothing_says_so(here: Path, finished: Path) -> None:
    (here / "empty").mkdir()
    (here / "empty/plan.json").write_bytes((finished / "plan.json").read_bytes())
    one_line(mclab("plot", "empty"), "tiny: no run has a result yet, so there is nothing to draw")
    assert list((here / "empty").iterdir()) == [here / "empty/plan.json"]


def test_table_and_plot_elsewhere_and_where_nothing_can_be_written(here: Path, finished: Path) -> None:
    assert fine("table", finished, "--out", "new").err.startswith("wrote into new/tables: table.csv")
    assert fine("plot", finished, "--out", "new").out == "new/plots/accuracy.png\nnew/plots/accuracy.svg\n"
    (here / "full").write_text("in the way")
    done = mclab("table", finished, "--out", "full")
    assert (done.code, done.out) == (2, fine("table", finished).out)
    assert done.err.startswith("full/tables: cannot write")
    assert done.err.count("\n") == 1


def test_a_full_disk_keeps_no_result_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    words = ("ablate", "--grid", "tiny.yaml", "--workers", 1)
    with monkeypatch.context() as patched:
        patched.setattr("mclab.report.write.write_tables", full)
        patched.setattr("mclab.report.plot.kinds.write_plots", full)
        done = mclab(*words)
    assert done.code == 2
    assert done.out.startswith("Does the gate matter?\n\ngate ")
    told, *faults = done.err.splitlines()[-3:]
    assert told.startswith("this command: 4 done; 0 stored before")
    assert [line.partition(": ")[0] for line in faults] == ["runs/tiny/tables", "runs/tiny/plots"]
    assert all("the disk is full; what was stored before is unharmed" in line for line in faults)
    again = fine(*words)
    assert (again.out, (here / "runs/tiny/tables/table.csv").is_file()) == (done.out, True)


def test_a_list_is_aligned_and_its_json_says_all(finished: Path) -> None:
    listed = fine("list", finished)
    head, *rows = listed.out.splitlines()
    assert head.split() == [
        "run_id",
        "status",
        "seed",
        "gate",
        "valid_accuracy",
        "test_accuracy",
        "steps_done",
        "wall_s",
    ]
    assert [row.split()[1:4] for row in rows] == [
        ["done", "0", "context"], ["done", "1", "context"], ["done", "0", "none"], ["done", "1", "none"],
    ]  # fmt: skip
    at = head.index("gate")
    assert {row[at : at + 7].strip() for row in rows} == {"context", "none"}
    assert listed.err == f"4 runs in {finished}\n"
    facts = fine("list", finished, "--json").json
    assert [fact["run_id"] for fact in facts] == [row.split()[0] for row in rows]
    assert {"test_loss", "valid_loss", "params", "tokens_per_s", "error"} <= set(facts[0])


def test_keys() -> None:
    lines = fine("keys").out.splitlines()
    assert lines[0].split() == ["key", "type", "default", "meaning"]
    assert any(line.startswith("train.lr ") and "float > 0" in line and "0.01" in line for line in lines)
    paths = [key["path"] for key in fine("keys", "--json").json]
    assert {"model.mixer.gate", "task.pairs", "seed"} <= set(paths)
    assert len(lines) == len(paths) + 1


def test_the_schema_of_a_grid_is_json() -> None:
    schema = fine("keys", "--schema").json
    assert schema["properties"].keys() >= {"base", "grid", "changes", "select", "seeds", "quick"}
    assert fine("keys", "--schema", "grid").json == schema
    assert fine("keys", "--schema", "space").json["properties"].keys() >= {"base", "space", "objective", "sampler"}


def test_help_of_every_verb() -> None:
    for verb in VERBS:
        done = fine(verb, "--help")
        assert done.out.startswith(f"Usage: mclab {verb} ")
        assert done.err == ""
    verbs = fine("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in verbs] == list(VERBS)
    assert all(line.endswith(".") and not line.endswith("...") for line in verbs), "cut to fit 80 columns"
    assert fine("--version").out.count(".") == 2
    bare = mclab()
    assert (bare.code, bare.out) == (2, "")
    assert "Commands:" in bare.err


def test_signs_that_a_terminal_lacks_are_spelled_plainly(finished: Path) -> None:
    def shown(*words: str) -> tuple[str, str]:
        done = subprocess.run(
            [SCRIPT, *words], env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
        )
        return done.stdout.decode("ascii"), done.stderr.decode("ascii")

    text, _ = shown("table", str(finished))
    assert re.search(r"\d\.\d{3} \+- \d\.\d{3} \(2\)", text)
    assert "±" in fine("table", finished).out
    (name, *_) = records(finished)
    run, _ = shown("show", name, str(finished))
    assert re.search(r"^  accuracy  [0-9]{2}  \d", run, re.M)
    more = ("--grid", str(finished / "grid.yaml"), "--out", str(finished), "--seeds", "0..2", "--dry-run")
    for told in (text, run, *shown("ablate", *more)):
        assert "\\" not in told

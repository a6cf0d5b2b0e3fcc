"""mclab table: the table again, in each format."""

import errno
import shlex
from pathlib import Path

import pytest

from tests.commands import TINY, fine, grid_file, mclab, no_plots, one_line, records, started


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
    one_line(mclab("table", finished, "--format", "md", "--json"), "give only one of them")


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
    assert all("the disk is full; results stored before are unharmed" in line for line in faults)
    again = fine(*words)
    assert (again.out, (here / "runs/tiny/tables/table.csv").is_file()) == (done.out, True)

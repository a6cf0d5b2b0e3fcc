"""Files: whole, equal twice, readable."""

import errno
import os
import subprocess
import sys

import polars as pl
import pytest

from mclab.report.table.export import write_files
from mclab.report.table.frames import cells_frame
from mclab.report.write import write_tables
from tests.report.plans import gates

GIVEN = ([0.5, 0.6, 0.7], [0.6, "diverged", 1.0], [0.5, None, 0.7])


def test_the_same_records_give_the_same_bytes(tmp_path):
    first = {path.name: path.read_bytes() for path in write_tables(*gates(*GIVEN), tmp_path / "a")}
    again = {path.name: path.read_bytes() for path in write_tables(*gates(*GIVEN), tmp_path / "b")}
    assert sorted(first) == ["runs.csv", "runs.parquet", "table.csv", "table.md", "table.parquet", "table.tex"]
    assert first == again
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(first)


def test_files_read_back_as_the_frame(tmp_path):
    plan, lookup = gates(*GIVEN)
    write_tables(plan, lookup, tmp_path)
    frame = cells_frame(plan, lookup)
    assert pl.read_parquet(tmp_path / "table.parquet").equals(frame)
    assert pl.read_csv(tmp_path / "table.csv", schema=frame.schema).equals(frame)


def test_a_file_is_replaced_whole_or_left(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_files(tmp_path, {"table.csv": "no bytes"})
    assert path.read_bytes() == b"old"
    assert write_files(tmp_path, {"table.csv": b"new"}) == [path]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_the_old_table(tmp_path, monkeypatch):
    """A file system may find out that it is full as late as when it is asked to put a file on the disk."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_files(tmp_path, {"table.csv": b"new"})
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_tables_load_neither_torch_nor_matplotlib():
    code = (
        "import sys, mclab.report.write, mclab.report.terminal;"
        "print([m for m in ('torch', 'triton', 'optuna', 'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")

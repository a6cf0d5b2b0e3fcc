"""Report files: made whole in memory, then put in place in one step; the same records give the same bytes."""

import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import polars as pl

from mclab.plan.plan import Plan
from mclab.plan.select import Lookup
from mclab.report.markdown import markdown
from mclab.report.runs import runs_of
from mclab.report.summary import summarise
from mclab.report.tables import cells_of
from mclab.report.tex import tex


def write_tables(plan: Plan, lookup: Lookup, folder: Path) -> list[Path]:
    """Write `table.csv`, `.parquet`, `.md` and `.tex`, `runs.csv` and `.parquet` into `folder`; return their paths."""
    return write_files(folder, table_files(plan, lookup))


def table_files(plan: Plan, lookup: Lookup) -> dict[str, bytes]:
    """What `write_tables` writes, by file name."""
    summary = summarise(plan, lookup)
    cells, runs = cells_of(summary), runs_of(summary, lookup)
    return {
        "table.csv": as_csv(cells),
        "table.parquet": as_parquet(cells),
        "table.md": markdown(summary).encode(),
        "table.tex": tex(summary).encode(),
        "runs.csv": as_csv(runs),
        "runs.parquet": as_parquet(runs),
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Put every file into `folder`, which is made when missing."""
    folder.mkdir(parents=True, exist_ok=True)
    return [replace_file(folder / name, content) for name, content in files.items()]


def replace_file(path: Path, content: bytes) -> Path:
    """Write beside `path` and rename over it, so that a reader sees the old file or the new one, never half of one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def as_csv(frame: pl.DataFrame) -> bytes:
    """Comma-separated, UTF-8, floats in the shortest form that reads back exactly, nothing for null."""
    return frame.write_csv().encode()


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Parquet; it holds no time of writing."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()

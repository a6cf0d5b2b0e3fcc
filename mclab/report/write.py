"""Report files: made whole in memory, then put in place in one step; the same records give the same bytes."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import polars as pl

from mclab.atomic_files import write_whole
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.table.effects import effects, effects_frame
from mclab.report.table.export import effects_page, markdown
from mclab.report.table.frames import cells_of, runs_of
from mclab.report.table.summary import summarise
from mclab.report.table.tex import tex


def write_tables(
    plan: Plan, lookup: Lookup, folder: Path, curve: Curve | None = None, underline: bool = False
) -> list[Path]:
    """Write `table.csv`, `.parquet`, `.md` and `.tex`, `runs.csv` and `.parquet`, and `effects.csv` and `.md`
    of a grid of two axes or more, into `folder`; return their paths. `underline` is for `tex`."""
    return write_files(folder, table_files(plan, lookup, curve, underline))


def table_files(plan: Plan, lookup: Lookup, curve: Curve | None = None, underline: bool = False) -> dict[str, bytes]:
    """What `write_tables` writes, by file name."""
    summary = summarise(plan, lookup, curve)
    cells, runs = cells_of(summary), runs_of(summary, lookup)
    found = effects(summary)
    more = {"effects.csv": as_csv(effects_frame(found)), "effects.md": effects_page(summary).encode()} if found else {}
    return {
        "table.csv": as_csv(cells),
        "table.parquet": as_parquet(cells),
        "table.md": markdown(summary).encode(),
        "table.tex": tex(summary, underline).encode(),
        "runs.csv": as_csv(runs),
        "runs.parquet": as_parquet(runs),
        **more,
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Put every file whole into `folder`, which is made when missing, or leave what was there. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]


def as_csv(frame: pl.DataFrame) -> bytes:
    """Comma-separated, UTF-8, floats in the shortest form that reads back exactly, nothing for null."""
    return frame.write_csv().encode()


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Parquet; it holds no time of writing."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()

"""Write the files of a reproduction: `paper.md`, `.csv`, `.tex` and `.parquet`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from mclab.plan.paper import Word
from mclab.report.paper.comparison import Entry, Held, Reproduction
from mclab.report.paper.text import how_to_read_paper, tables, verdicts
from mclab.report.prose.notes import alarms
from mclab.report.table.export import as_csv, as_parquet, write_files
from mclab.report.table.grids import markdown_escape, markdown_grid
from mclab.report.table.latex import typeset

#: The name and type of each column of the frame.
SCHEMA: dict[str, Any] = {
    "row": pl.String,
    "column": pl.String,
    "metric": pl.String,
    "n": pl.Int64,
    "mean": pl.Float64,
    "std": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "mark": pl.String,
    "paper": pl.Float64,
    "paper_word": pl.String,
    "unit": pl.String,
    "better": pl.String,
    "against": pl.String,
    "pairs": pl.Int64,
    "diff_mean": pl.Float64,
    "diff_lo": pl.Float64,
    "diff_hi": pl.Float64,
    "p": pl.Float64,
    "paper_diff": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
    "ceiling": pl.Boolean,
    "seeds_about": pl.Int64,
    "seeds_safe": pl.Int64,
}


def frame(found: Reproduction) -> pl.DataFrame:
    """Return a frame with one line for each comparison; an entry without a comparison has one line too.

    `mean`, `std`, `lo`, `hi` and the differences are in units of `metric` (shares from 0 to 1), `paper` and
    `paper_diff` in `unit`. `mark` says why the entry gets no verdict, `reason` why the comparison gets none.
    """
    return pl.DataFrame(list(_lines(found)), schema=SCHEMA)


def _lines(found: Reproduction) -> Iterator[dict[str, Any]]:
    for column in found.columns:
        for row in found.rows:
            entry = found.entries[row.name, column.name]
            head = {"row": row.name, "column": column.name, "metric": column.metric, **_ours(entry)}
            head |= {"unit": column.unit, "better": column.better}
            own = [_held(each) for each in found.held if (each.row, each.column) == (row.name, column)]
            yield from ({**head, **each} for each in own or [{}])


def _ours(entry: Entry) -> dict[str, Any]:
    spread = entry.spread
    known = {name: getattr(spread, name) for name in ("n", "mean", "std", "lo", "hi")}
    return {**known, "mark": entry.mark, **_paper(entry.paper)}


def _paper(figure: float | Word | None) -> dict[str, Any]:
    return {"paper_word": figure} if isinstance(figure, str) else {"paper": figure}


def _held(held: Held) -> dict[str, Any]:
    gap = held.gap
    about, safe = held.seeds or (None, None)
    return {
        "against": held.against,
        "pairs": gap.n,
        "diff_mean": gap.mean,
        "diff_lo": gap.lo,
        "diff_hi": gap.hi,
        "p": held.p,
        "paper_diff": held.paper,
        "verdict": held.verdict,
        "reason": held.reason,
        "ceiling": held.ceiling,
        "seeds_about": about,
        "seeds_safe": safe,
    }


def markdown(found: Reproduction) -> str:
    """Return the page in markdown: question, tables, verdicts, how to read them."""
    plan = found.summary.plan
    parts = [f"# {markdown_escape(plan.question or plan.name)}"]
    for title, columns in tables(found):
        parts += [markdown_escape(title)] * bool(title) + [markdown_grid(columns)]
    lists = [verdicts(found), [*how_to_read_paper(found), *alarms(found.summary), *plan.notes]]
    parts += ["\n".join(f"- {markdown_escape(line)}" for line in lines) for lines in lists if lines]
    return "\n\n".join(parts) + "\n"


def files(found: Reproduction) -> dict[str, bytes]:
    """Return the content of the files that `write` writes, by file name."""
    plan, lines = found.summary.plan, frame(found)
    notes = [*verdicts(found), *how_to_read_paper(found), *alarms(found.summary)]
    text = typeset(plan.question or plan.name, f"{plan.name}-paper", [each for _, each in tables(found)], notes)
    return {
        "paper.md": markdown(found).encode(),
        "paper.csv": as_csv(lines),
        "paper.tex": text.encode(),
        "paper.parquet": as_parquet(lines),
    }


def write(found: Reproduction, folder: Path) -> list[Path]:
    """Write the four files into `folder`; return their paths. Raises `OSError`."""
    return write_files(folder, files(found))

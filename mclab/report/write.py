"""Write the files of a table, each in one step. The same records give the same bytes."""

from pathlib import Path

from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.report.prose.effects import effect_sentences, how_to_read_effects
from mclab.report.prose.notes import notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.columns import shown_columns, slice_columns
from mclab.report.table.effects import effect_columns, effects, effects_frame
from mclab.report.table.export import as_csv, as_parquet, write_files
from mclab.report.table.frames import cells_of, runs_of
from mclab.report.table.grids import markdown_escape, markdown_grid
from mclab.report.table.summary import Summary, summarise
from mclab.report.table.tex import tex


def write_tables(
    plan: Plan, lookup: Lookup, folder: Path, curve: Curve | None = None, underline: bool = False
) -> list[Path]:
    """Write the files of a table into `folder` and return their paths.

    They are `table.csv`, `.parquet`, `.md` and `.tex`, `runs.csv` and `.parquet`, and for a grid of two or more axes
    `effects.csv` and `.md`. `underline` is passed to `tex`.
    """
    return write_files(folder, table_files(plan, lookup, curve, underline))


def table_files(plan: Plan, lookup: Lookup, curve: Curve | None = None, underline: bool = False) -> dict[str, bytes]:
    """Return {file name: content} for the files that `write_tables` writes."""
    summary = summarise(plan, lookup, curve)
    cells, runs = cells_of(summary), runs_of(summary, lookup)
    found = effects(summary)
    more = {"effects.csv": as_csv(effects_frame(found)), "effects.md": effects_page(summary).encode()} if found else {}
    return {
        "table.csv": as_csv(cells),
        "table.parquet": as_parquet(cells),
        "table.md": markdown(summary).encode(),
        "table.tex": tex(summary, underline, notes(summary)).encode(),
        "runs.csv": as_csv(runs),
        "runs.parquet": as_parquet(runs),
        **more,
    }


def markdown(summary: Summary) -> str:
    """Return the table as a page of markdown: question, table, verdict, slices, effects, notes."""
    parts = [f"# {markdown_escape(summary.plan.question or summary.plan.name)}", markdown_grid(shown_columns(summary))]
    words = verdict(summary)
    if words:
        parts.append("\n".join(f"- {markdown_escape(line)}" for line in words))
    slices = slice_columns(summary)
    if slices:
        parts += ["Test accuracy by slice:", markdown_grid(slices)]
    parts += _effects(summary)
    parts += ["Notes:", "\n".join(f"- {markdown_escape(line)}" for line in notes(summary))]
    return "\n\n".join(parts) + "\n"


def effects_page(summary: Summary) -> str:
    """Return the effects of a whole grid as a separate page of markdown."""
    return "\n\n".join([f"# {markdown_escape(summary.plan.question or summary.plan.name)}", *_effects(summary)]) + "\n"


def _effects(summary: Summary) -> list[str]:
    """Return title, table and sentences on effects; an empty list if there are no effects."""
    if not (found := effects(summary)):
        return []
    lines = [*effect_sentences(found), *how_to_read_effects(summary)]
    words = "\n".join(f"- {markdown_escape(line[0].upper() + line[1:])}" for line in lines)
    return ["Effects of the axes:", markdown_grid(effect_columns(found)), words]

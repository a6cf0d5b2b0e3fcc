"""`mclab table`: write the tables of a run folder of a grid or a search into files."""

from pathlib import Path

from mclab.plan.plan import Plan
from mclab.plan.space_trials import Trials
from mclab.store import Records
from mclab.store.files import plainly


def write_tables(plan: Plan, records: Records, out: Path, underline: bool = False) -> list[Path]:
    """Write the tables of a grid's stored runs into `out`/tables, and return the files.

    With `underline` the LaTeX table underlines the second best value. Raises `ConfigError` if a file cannot be written.
    """
    from mclab.report import write

    with plainly(out / "tables"):
        return write.write_tables(plan, records.lookup, out / "tables", records.curve, underline)


def write_sweep_tables(found: Trials, out: Path) -> list[Path]:
    """Write the tables of a search into `out`/tables, and return the files.

    Raises `ConfigError` if a file cannot be written.
    """
    from mclab.report.sweeps import write

    with plainly(out / "tables"):
        return write.write_tables(found, out / "tables")


def sweep_table(found: Trials, name: str) -> bytes:
    """Return the content of `name`, one of the files that `write_sweep_tables` writes."""
    from mclab.report.sweeps.study import Study
    from mclab.report.sweeps.write import page, trials_frame
    from mclab.report.table.export import as_csv, as_parquet

    if name == "sweep.md":
        return page(Study(found)).encode()
    frame = trials_frame(Study(found))
    return as_csv(frame) if name == "trials.csv" else as_parquet(frame)

"""A run folder as one frame: what `mclab.load` returns."""

from pathlib import Path
from typing import TYPE_CHECKING

from mclab.store import Records

if TYPE_CHECKING:
    import polars as pl


def frame(folder: str | Path) -> "pl.DataFrame":
    """One row per stored run: the frame of `runs.csv` where the folder has a plan, else every record with its keys.

    Raises `ConfigError` where there is no such folder, or its plan is damaged.
    """
    records = Records(folder)
    plan = records.plan()
    if plan is None:
        return records.scan_frame()
    from mclab.report.runs import runs_frame

    return runs_frame(plan, records.lookup)

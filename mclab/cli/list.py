"""`mclab list`: list all run folders, or the stored runs of one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mclab.cli import options as of
from mclab.cli.output import in_columns, remark, result, result_json
from mclab.report.text import NOTHING

#: The folder in which commands create their run folders.
RUNS = Path("runs")
_DIGITS = {"valid_accuracy": 3, "test_accuracy": 3, "valid_loss": 3, "test_loss": 3, "tokens_per_s": 0, "wall_s": 1}
#: The columns that are shown only with --json.
_JSON_ONLY = ("valid_loss", "test_loss", "params", "tokens_per_s")


def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", parser=of.folder, help="Run folder. [default: list the folders below runs/]"),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """List the run folders, or the stored runs of one.

    Without FOLDER, the run folders below runs/: kind, runs stored of those planned, day of the last run, question. With
    FOLDER, its runs: status, seed, the keys that vary, metrics; in a sweep's folder also the number of the trial.
    """
    if folder is None:
        return _folders(as_json)
    from mclab.verbs.list import listing, readable
    from mclab.verbs.load import opened

    records = opened(folder, "records", say=remark)
    rows = listing(records, *readable(records, remark))
    if as_json:
        return result_json(rows)
    result(listing_text(rows))
    return remark(f"{len(rows)} runs in {folder}")


def _folders(as_json: bool) -> None:
    from mclab.verbs.list import folders

    found = folders(RUNS, remark)
    if as_json:
        return result_json(found)
    rows = [("folder", "kind", "stored", "last", "question")]
    for each in found:
        planned = NOTHING if each["planned"] is None else f"{each['planned']:,}"
        stored = f"{each['stored']:,} of {planned} {each['of']}"
        rows.append((each["folder"], each["kind"], stored, each["date"] or NOTHING, each["question"] or NOTHING))
    return result(in_columns(rows) if found else f"no run folder below {RUNS}/")


def listing_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the listing as text with one line for each run; empty columns are left out."""
    if not rows:
        return "no runs stored"
    keys = [key for key in rows[0] if key not in _JSON_ONLY and any(row[key] is not None for row in rows)]
    right = [place for place, key in enumerate(keys) if all(isinstance(row[key], int | float | None) for row in rows)]
    return in_columns([keys, *([_shown(key, row[key]) for key in keys] for row in rows)], right)


def _shown(key: str, value: Any) -> str:
    from mclab.config.keys import shown

    if value is None:
        return NOTHING
    return f"{value:,.{_DIGITS[key]}f}" if key in _DIGITS else shown(value)

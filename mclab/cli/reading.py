"""The verbs that read a run folder: table, plot, list."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import remark, result, result_json, width
from mclab.cli.texts import listing_text, written

if TYPE_CHECKING:
    from mclab.plan.plan import Plan
    from mclab.store import Records

FORMATS = ("png", "svg", "pdf")
#: Folders that are named where one of them was probably meant.
_MOST_NAMED = 3


def table(folder: of.Folder, out: of.Elsewhere = None, as_json: of.Json = False) -> None:
    """Print a run folder's table and write it again as csv, parquet and md."""
    from mclab.ablate import write_tables

    records = _records(folder, "plan.json")
    plan = _plan(records)
    if as_json:
        from mclab.report.tables import cells_frame

        result_json(cells_frame(plan, records.lookup).to_dicts())
    else:
        from mclab.report.terminal import terminal_table

        result(terminal_table(plan, records.lookup, width()).rstrip("\n"))
    remark(written(write_tables(plan, records.lookup, out or folder)))


def plot(
    folder: of.Folder,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="FORMAT", help="png, svg or pdf; repeat for several. [default: png, svg]"),
    ] = None,
    out: of.Elsewhere = None,
) -> None:
    """Write a run folder's plot again, and print where it stands."""
    from mclab.ablate import write_plots

    wanted = [of.one_of("--format", given, FORMATS) for given in formats or ("png", "svg")]
    records = _records(folder, "plan.json")
    for path in write_plots(_plan(records), records.lookup, out or folder, wanted):
        result(str(path))


def list_(folder: of.Folder, as_json: of.Json = False) -> None:
    """List the stored runs: status, seed, the keys that vary, metrics."""
    from mclab.listing import listing

    records = _records(folder, "records")
    rows = listing(records, _readable_plan(records))
    if as_json:
        return result_json(rows)
    result(listing_text(rows))
    return remark(f"{len(rows)} runs in {folder}")


def _records(folder: Path, needed: str) -> "Records":
    """The records of a run folder. Raises `ConfigError` where it is none, with one that may have been meant."""
    from mclab.config.strict import ConfigError
    from mclab.store import Records

    records = Records(folder, say=remark)
    if (folder / needed).exists():
        return records
    near = sorted(str(path.parent) for path in folder.glob(f"*/{needed}"))[:_MOST_NAMED]
    hint = f"did you mean {' or '.join(near)}?" if near else "give the folder of an ablate or train command"
    raise ConfigError(f"{folder}: holds no {needed}; {hint}")


def _plan(records: "Records") -> "Plan":
    plan = records.plan()
    assert plan is not None
    return plan


def _readable_plan(records: "Records") -> "Plan | None":
    """Without its plan a folder's records still can be listed."""
    from mclab.config.strict import ConfigError

    try:
        return records.plan()
    except ConfigError as error:
        remark(f"{error}; listed by the records alone")
        return None

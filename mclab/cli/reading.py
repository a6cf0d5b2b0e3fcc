"""The verbs that read a run folder: table, plot, list."""

import sys
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
#: What `table --format` prints, and the file that holds the same.
TABLES = {"text": None, "md": "table.md", "tex": "table.tex", "csv": "table.csv", "parquet": "table.parquet"}
KINDS = ("accuracy", "points", "curves", "slices", "heat", "capacity", "state")
#: Folders that are named where one of them was probably meant.
_MOST_NAMED = 3


def table(
    folder: of.Folder,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"What to print: {', '.join(TABLES)}.")
    ] = "text",
    out: of.Elsewhere = None,
    as_json: of.Json = False,
) -> None:
    """Print a run folder's table and write it again as csv, parquet, md and tex."""
    from mclab.ablate import write_tables
    from mclab.config.strict import ConfigError

    of.one_of("--format", form, tuple(TABLES))
    if as_json and form != "text":
        raise ConfigError(f"--json: is a format of its own, --format {form} another; keep one")
    records = _records(folder, "plan.json")
    plan = _plan(records)
    if as_json:
        from mclab.report.tables import cells_frame

        result_json(cells_frame(plan, records.lookup).to_dicts())
    elif (name := TABLES[form]) is not None:
        from mclab.report.write import table_files

        _file(table_files(plan, records.lookup)[name], name)
    else:
        from mclab.again import command
        from mclab.report.terminal import terminal_table

        again = command(folder, plan)
        result(terminal_table(plan, records.lookup, width(), again).rstrip("\n"))
    remark(written(write_tables(plan, records.lookup, out or folder)))


def _file(data: bytes, name: str) -> None:
    """A file's content on standard output. Raises `ConfigError` for one that a terminal cannot show."""
    if not name.endswith(".parquet"):
        return result(data.decode().removesuffix("\n"))
    from mclab.config.strict import ConfigError
    from mclab.store.files import plainly

    if sys.stdout.isatty():
        raise ConfigError("--format parquet: is binary; send it to a file, e.g. > table.parquet")
    with plainly(Path("standard output")):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return None


def plot(
    folder: of.Folder,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"{', '.join(KINDS)}; repeat for several. [default: accuracy, and heat where slices are a grid]",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="FORMAT", help="png, svg or pdf; repeat for several. [default: png, svg]"),
    ] = None,
    out: of.Elsewhere = None,
) -> None:
    """Write a run folder's plots again, and print where they stand."""
    wanted = [of.one_of("--format", given, FORMATS) for given in formats or ("png", "svg")]
    asked = [of.one_of("--kind", given, KINDS) for given in kinds or ()]
    records = _records(folder, "plan.json")
    plan = _plan(records)

    from mclab.report.plots import refuse_empty, write_plots
    from mclab.store.files import plainly

    where = (out or folder) / "plots"
    refuse_empty(plan, records.lookup)
    with plainly(where):
        paths = write_plots(plan, records.lookup, where, wanted, asked, records.curve)
    for path in paths:
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

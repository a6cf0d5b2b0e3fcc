"""The verbs that read a run folder: table, plot, list."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli import studies
from mclab.cli.streams import content, remark, result, result_json, width
from mclab.cli.texts import listing_text, written

if TYPE_CHECKING:
    from mclab.plan.plan import Plan
    from mclab.plan.space_trials import Trials
    from mclab.report.plot.layout import Layout
    from mclab.store import Records

FORMATS = ("png", "svg", "pdf")
#: What `table --format` prints, and the file that holds the same.
TABLES = {"text": None, "md": "table.md", "tex": "table.tex", "csv": "table.csv", "parquet": "table.parquet"}
KINDS = ("accuracy", "points", "curves", "slices", "heat", "capacity", "state", "effects")
#: What of a run folder's files a report needs: a grid's or a sweep's.
_REPORTED = ("plan.json", "trials.json")


def table(
    folder: of.Folder,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"What to print: {', '.join(TABLES)}.")
    ] = "text",
    out: of.Elsewhere = None,
    as_json: of.Json = False,
    baseline: of.Baseline = None,
    second: Annotated[
        str, typer.Option("--second", metavar="HOW", help="With --format tex: underline the second best, or none.")
    ] = "none",
) -> None:
    """Print a run folder's table, and write its tables again.

    A grid's has a row for each cell. Of a sweep, text and md show the best trials and what matters, csv and parquet
    every trial, --json the whole study; it has no tex.
    """
    from mclab.config.strict import ConfigError
    from mclab.loading import trials

    of.one_of("--format", form, tuple(TABLES))
    underline = of.one_of("--second", second, ("underline", "none")) == "underline"
    if underline and form != "tex":
        raise ConfigError("--second: goes with --format tex")
    if as_json and form != "text":
        raise ConfigError(f"--json: is a format of its own, --format {form} another; keep one")
    if (study := trials(folder)) is not None:
        _only_grids(baseline, folder)
        return studies.table(study, folder, form, out or folder, as_json)
    return _table(folder, form, out or folder, as_json, baseline, underline)


def _only_grids(baseline: str | None, folder: Path) -> None:
    from mclab.config.strict import ConfigError

    if baseline is not None:
        raise ConfigError(f"--baseline: is for a grid; {folder} holds a sweep")


def _table(folder: Path, form: str, out: Path, as_json: bool, baseline: str | None, underline: bool) -> None:
    from mclab.ablate import write_tables
    from mclab.loading import opened
    from mclab.report.table.baseline import with_baseline

    records = opened(folder, *_REPORTED, say=remark)
    plan = with_baseline(_plan(records), baseline)
    if as_json:
        from mclab.report.table.frames import cells_frame

        result_json(cells_frame(plan, records.lookup, records.curve).to_dicts())
    elif (name := TABLES[form]) is not None:
        from mclab.report.write import table_files

        content(table_files(plan, records.lookup, records.curve, underline)[name], name)
    else:
        from mclab.again import command
        from mclab.report.terminal import terminal_table

        again = command(folder, plan)
        result(terminal_table(plan, records.lookup, width(), again, records.curve).rstrip("\n"))
    remark(*written(write_tables(plan, records, out, underline)))


def plot(
    folder: of.Folder,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"{', '.join(KINDS)}; of a sweep {', '.join(studies.KINDS)}; repeat for several. "
            "[default: accuracy, heat where slices are a grid, effects of a grid of axes; of a sweep all]",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="FORMAT", help="png, svg or pdf; repeat for several. [default: png, svg]"),
    ] = None,
    out: of.Elsewhere = None,
    baseline: of.Baseline = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            metavar="WIDTH",
            help="For print, at this width: single (3.3 inches), double (7) or centimetres; text of 8 points.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Above the figure; none for nothing. [the question]")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="OLD=NEW", help="Rename a row, a key or a slice; repeat for several."),
    ] = None,
) -> None:
    """Write a run folder's plots again, and print where they stand."""
    from mclab.loading import trials

    wanted = [of.one_of("--format", given, FORMATS) for given in formats or ("png", "svg")]
    asked = [of.one_of("--kind", given, (*KINDS, *studies.KINDS)) for given in kinds or ()]
    if (study := trials(folder)) is not None:
        _only_grids(baseline, folder)
        return studies.plot(study, folder, asked, wanted, out or folder, _look(width, title), labels or ())
    return _plot(folder, asked, wanted, (out or folder) / "plots", baseline, _look(width, title), labels or ())


def _look(width: str | None, title: str | None) -> "Layout":
    """The layout that was asked for."""
    from dataclasses import replace

    from mclab.report.plot.layout import Layout, inches, printed

    look = Layout() if width is None else printed(inches(width))
    return look if title is None else replace(look, heading="" if title == "none" else title)


def _plot(
    folder: Path,
    asked: list[str],
    wanted: list[str],
    where: Path,
    baseline: str | None,
    look: "Layout",
    labels: Sequence[str],
) -> None:
    from mclab.config.strict import ConfigError
    from mclab.loading import opened
    from mclab.report.plot.kinds import refuse_empty, write_plots
    from mclab.report.table.baseline import with_baseline
    from mclab.store.files import plainly

    records = opened(folder, *_REPORTED, say=remark)
    plan = with_baseline(_plan(records), baseline)
    if strange := [kind for kind in asked if kind not in KINDS]:
        raise ConfigError(f"--kind: {strange[0]} is for a sweep; {folder} holds a grid: {', '.join(KINDS)}")
    refuse_empty(plan, records.lookup)
    with plainly(where):
        paths = write_plots(plan, records.lookup, where, wanted, asked, records.curve, look, labels)
    for path in paths:
        result(str(path))


def list_(folder: of.Folder, as_json: of.Json = False) -> None:
    """List the stored runs: status, seed, what varies, metrics.

    In a sweep's folder also the number of the trial.
    """
    from mclab.listing import listing
    from mclab.loading import opened

    records = opened(folder, "records", say=remark)
    rows = listing(records, *_readable(records))
    if as_json:
        return result_json(rows)
    result(listing_text(rows))
    return remark(f"{len(rows)} runs in {folder}")


def _plan(records: "Records") -> "Plan":
    plan = records.plan()
    assert plan is not None
    return plan


def _readable(records: "Records") -> "tuple[Plan | None, Trials | None]":
    """What the records belong to. Without it a folder's records still can be listed."""
    from mclab.config.strict import ConfigError
    from mclab.loading import trials

    try:
        return records.plan(), trials(records.path)
    except ConfigError as error:
        remark(f"{error}; listed by the records alone")
        return None, None

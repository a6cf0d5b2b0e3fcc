"""`mclab table`: print the table of a grid or a search again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import content, remark, result, result_json, width, written

if TYPE_CHECKING:
    from mclab.plan.space_trials import Trials

#: The values of `--format` for a grid and for a search, each with the file whose content is printed.
TABLES = {"text": None, "md": "table.md", "tex": "table.tex", "csv": "table.csv", "parquet": "table.parquet"}
SWEEP_TABLES = {"text": None, "md": "sweep.md", "csv": "trials.csv", "parquet": "trials.parquet"}


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

    The table of a grid has a row for each cell. For a sweep, text and md show the best trials and which keys matter,
    csv and parquet all trials, --json the whole study; there is no tex.
    """
    from mclab.config.strict import ConfigError
    from mclab.verbs.load import trials

    of.one_of("--format", form, tuple(TABLES))
    underline = of.one_of("--second", second, ("underline", "none")) == "underline"
    if underline and form != "tex":
        raise ConfigError("--second: this option needs --format tex")
    if as_json and form != "text":
        raise ConfigError(f"--json: cannot be used together with --format {form}; give only one of them")
    if (study := trials(folder)) is not None:
        of.only_for_grids(baseline, folder)
        return _sweep(study, folder, form, out or folder, as_json)
    return _grid(folder, form, out or folder, as_json, baseline, underline)


def _grid(folder: Path, form: str, out: Path, as_json: bool, baseline: str | None, underline: bool) -> None:
    from mclab.report.table.baseline import with_baseline
    from mclab.verbs.load import planned
    from mclab.verbs.table import write_tables

    plan, records = planned(folder, say=remark)
    plan = with_baseline(plan, baseline)
    if as_json:
        from mclab.report.table.frames import cells_frame

        result_json(cells_frame(plan, records.lookup, records.curve).to_dicts())
    elif (name := TABLES[form]) is not None:
        from mclab.report.write import table_files

        content(table_files(plan, records.lookup, records.curve, underline)[name], name)
    else:
        from mclab.report.terminal import terminal_table
        from mclab.verbs.resume import command

        again = command(folder, plan)
        result(terminal_table(plan, records.lookup, width(), again, records.curve).rstrip("\n"))
    remark(*written(write_tables(plan, records, out, underline)))


def _sweep(found: "Trials", folder: Path, form: str, out: Path, as_json: bool) -> None:
    from mclab.config.strict import ConfigError
    from mclab.verbs.table import sweep_table, write_sweep_tables

    if form not in SWEEP_TABLES:
        raise ConfigError(
            f"--format: {form} is for grids, but {folder} holds a sweep; give one of {', '.join(SWEEP_TABLES)}"
        )
    if as_json:
        from mclab.plan.space_trials import as_dict

        result_json(as_dict(found))
    elif (name := SWEEP_TABLES[form]) is not None:
        content(sweep_table(found, name), name)
    else:
        from mclab.report.sweeps.tables import terminal_text

        result(terminal_text(found, width()).rstrip("\n"))
    remark(*written(write_sweep_tables(found, out)))

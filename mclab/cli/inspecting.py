"""The verbs that look closely: show, compare, doctor."""

from pathlib import Path
from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import remark, result, result_json


def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Run id, or its first digits.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", parser=of.folder, help="Run folder. [default: any under runs/]")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every key, also those at their defaults.")] = False,
    as_json: of.Json = False,
) -> None:
    """Print one stored run: keys, scores, cost, provenance, curve."""
    from mclab.show import as_dict, find

    if folder is not None and Path(run).is_dir() and not folder.exists():
        run, folder = str(folder), Path(run)
    found = find(run, folder, remark)
    if as_json:
        return result_json(as_dict(found))
    from mclab.cli.told import run_text

    return result(run_text(found, every))


def compare(
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER ROW ROW",
            help="Two rows of a table, each by its name or by key=value,key=value. Across folders: "
            "FOLDER:ROW FOLDER:ROW, or FOLDER FOLDER for every row that both have.",
        ),
    ],
    as_json: of.Json = False,
) -> None:
    """Compare two groups of stored runs, seed by seed.

    Means, difference and paired test by slice, and what else sets the groups apart.
    """
    from mclab.compare import comparisons

    found = comparisons(groups, remark)
    if as_json:
        return result_json([each.as_dict() for each in found])
    from mclab.cli.told import comparison_text

    return result("\n\n".join(map(comparison_text, found)))


def doctor(as_json: of.Json = False) -> None:
    """Say what this machine offers, and what a missing piece costs.

    Versions, devices, memory, disk, optional packages and programs.
    """
    from mclab.doctor import broken, examine

    found = examine(Path())
    if as_json:
        result_json([vars(finding) for finding in found])
    else:
        from mclab.cli.told import doctor_text

        result(doctor_text(found))
    if broken(found):
        raise typer.Exit(2)

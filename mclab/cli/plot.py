"""`mclab plot`: draw the plots of a grid or a search again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import remark, result

if TYPE_CHECKING:
    from mclab.report.plot.layout import Layout

FORMATS = ("png", "svg", "pdf")
#: The values of `--kind` for a grid and for a search.
KINDS = ("accuracy", "points", "curves", "slices", "heat", "capacity", "state", "effects")
SWEEP_KINDS = ("importances", "marginals", "contour", "front")


def plot(
    folder: of.Folder,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"{', '.join(KINDS)}; of a sweep {', '.join(SWEEP_KINDS)}; repeat for several. "
            "[default: accuracy; heat and effects if the grid has them; of a sweep all]",
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
            help="Width in print: single (3.3 inches), double (7 inches) or a number of centimetres; text of 8 points.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the figure, or none. [default: question]")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="OLD=NEW", help="Rename a row, a key or a slice; repeat for several."),
    ] = None,
) -> None:
    """Write a run folder's plots again, and print their paths."""
    from mclab.report.table.baseline import with_baseline
    from mclab.verbs.load import planned, trials
    from mclab.verbs.plot import draw_grid, draw_sweep

    wanted = [of.one_of("--format", given, FORMATS) for given in formats or ("png", "svg")]
    asked = [of.one_of("--kind", given, (*KINDS, *SWEEP_KINDS)) for given in kinds or ()]
    look, where = _layout(width, title), out or folder
    if (study := trials(folder)) is not None:
        of.only_for_grids(baseline, folder)
        _refuse_others(asked, SWEEP_KINDS, f"is a kind for grids, but {folder} holds a sweep; give one of")
        paths = draw_sweep(study, folder, where, wanted, asked, look, labels or (), remark)
    else:
        plan, records = planned(folder, remark)
        _refuse_others(asked, KINDS, f"is a kind for sweeps, but {folder} holds a grid; give one of")
        paths = draw_grid(with_baseline(plan, baseline), records, where, wanted, asked, look, labels or (), remark)
    for path in paths:
        result(str(path))


def _refuse_others(asked: Sequence[str], known: Sequence[str], reason: str) -> None:
    from mclab.config.strict import ConfigError

    if strange := [kind for kind in asked if kind not in known]:
        raise ConfigError(f"--kind: {strange[0]} {reason} {', '.join(known)}")


def _layout(width: str | None, title: str | None) -> "Layout":
    """Return the layout that the options `--width` and `--title` ask for."""
    from dataclasses import replace

    from mclab.report.plot.layout import Layout, inches, printed

    look = Layout() if width is None else printed(inches(width))
    return look if title is None else replace(look, heading="" if title == "none" else title)

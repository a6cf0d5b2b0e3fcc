"""The verb that writes a page to be sent: report."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import remark, result

if TYPE_CHECKING:
    from mclab.plan.space_trials import Trials
    from mclab.report.page.html import Source

#: The page's name in a run folder.
PAGE = "report.html"


def report(
    folder: of.Folder,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", parser=of.file, help="Write here. [default: FOLDER/report.html]"),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write a run folder as one HTML page, to be sent.

    It holds the answer, every table and plot, configuration, provenance and data, needs nothing beside itself and asks
    for nothing on the network.
    """
    from mclab.config.strict import ConfigError
    from mclab.files import write_whole
    from mclab.store.files import plainly

    path = out or folder / PAGE
    if path.is_dir():
        raise ConfigError(f"--out: {path} is a folder; give a file's name, e.g. {path / PAGE}")
    page = _page(folder)
    with plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page)
    result(str(path))
    if show:
        _open(path)


def _page(folder: Path) -> bytes:
    from mclab.loading import opened, trials

    records = opened(folder, "plan.json", "trials.json", say=remark)
    if (study := trials(folder)) is not None:
        from mclab.report.page.sweep import sweep_page

        return sweep_page(study, records.scan(), _of_sweep(folder, study))
    from mclab.again import command
    from mclab.report.page.grid import grid_page
    from mclab.report.page.html import Source

    plan = records.plan()
    assert plan is not None, "the folder holds a plan"
    again = command(folder, plan)
    made = again.replace("mclab ablate --grid", "mclab reproduce", 1) if again and plan.paper else again
    seen = [*[made] * bool(made), f"mclab table {_quoted(folder)}", f"mclab report {_quoted(folder)}"]
    source = Source(folder, _dates(folder), tuple(line for line in seen if line), again)
    return grid_page(plan, records.lookup, records.curve, source)


def _of_sweep(folder: Path, study: "Trials") -> "Source":
    from mclab.report.page.html import Source
    from mclab.store import SPACE

    space = folder / SPACE
    made = f"mclab sweep --space {_quoted(space)} --trials {study.asked} --out {_quoted(folder)}"
    lines = [f"{made}  # and the keys that were given beside it"] if space.is_file() else []
    return Source(folder, _dates(folder), (*lines, f"mclab table {_quoted(folder)}", f"mclab report {_quoted(folder)}"))


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _dates(folder: Path) -> tuple[str, str] | None:
    """The days on which the first and the last record were written, as the files have it."""
    times = [path.stat().st_mtime for path in (folder / "records").glob("*.json")]
    if not times:
        return None
    first, last = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (min(times), max(times)))
    return first, last


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        remark(f"--open: no browser was found; open {path} yourself")

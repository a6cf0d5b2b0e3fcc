"""`mclab report`: write a run folder as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import remark, result

#: The name of the page in a run folder.
PAGE = "report.html"


def report(
    folder: of.Folder,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", parser=of.file, help="File of the page. [default: FOLDER/report.html]"),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write a run folder as one HTML page that can be sent.

    It holds the answer, every table and plot, configuration, provenance and data, in one file that needs no network.
    """
    from mclab.atomic_files import write_whole
    from mclab.config.strict import ConfigError
    from mclab.store.files import plainly
    from mclab.verbs.report import page

    path = out or folder / PAGE
    if path.is_dir():
        raise ConfigError(f"--out: {path} is a folder; give a file's name, e.g. {path / PAGE}")
    content = page(folder, remark)
    with plainly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    result(str(path))
    if show:
        _open(path)


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        remark(f"--open: no browser was found; open {path} yourself")

"""`mclab doctor`: print what this machine offers, and what does not work without missing parts."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mclab.cli import options as of
from mclab.cli.output import result, result_json, section

if TYPE_CHECKING:
    from mclab.verbs.doctor import Finding

_MARKS = {"ok": " ", "note": "-", "broken": "!"}


def doctor(as_json: of.Json = False) -> None:
    """Say what this machine offers, and what a missing piece costs.

    Versions, devices, memory, disk, optional packages and programs.
    """
    from mclab.verbs.doctor import broken, examine

    found = examine(Path())
    if as_json:
        result_json([vars(finding) for finding in found])
    else:
        result(doctor_text(found))
    if broken(found):
        raise typer.Exit(2)


def doctor_text(found: Sequence["Finding"]) -> str:
    """Return the findings as text, a block for each subject.

    `-` is printed before a note, e.g. on a missing optional part, and `!` before something broken.
    """
    blocks = []
    for about, group in groupby(found, key=lambda finding: finding.about):
        rows = [(_MARKS[each.state], each.name, each.value, each.cost) for each in group]
        blocks.append(section(about, rows))
    bad = sum(finding.state == "broken" for finding in found)
    end = (
        f"{bad} do not work: mend the lines marked with !"
        if bad
        else "everything that mclab needs is installed and works"
    )
    return "\n".join([*blocks, end])

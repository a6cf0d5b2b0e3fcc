"""Print results to standard output and everything else to standard error. A reader may close either of them early.

In texts for people, control characters are escaped and passwords removed. JSON and file contents stay unchanged.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import indent
from types import TracebackType
from typing import Any, TextIO

from mclab.passwords import without_passwords
from mclab.printable import one_line, printable
from mclab.report.text import aligned, cut

#: The most characters of a text in a column.
_LONGEST = 60


def result(text: str) -> None:
    """Print a result for people. Raises `ConfigError` if it cannot be written; a closed pipe is not an error."""
    _write(sys.stdout, printable(without_passwords(text)))


def result_json(value: Any) -> None:
    """Print a result as strict JSON, in ASCII, so that it does not depend on the terminal's encoding."""
    _write(sys.stdout, json.dumps(value, indent=1, allow_nan=False))


def content(data: bytes, name: str) -> None:
    """Print the content of the file `name` as the result. Raises `ConfigError` for binary content on a terminal."""
    if not name.endswith(".parquet"):
        text = data.decode().removesuffix("\n")
        return _write(sys.stdout, printable(text) if sys.stdout is not None and sys.stdout.isatty() else text)
    from mclab.config.strict import ConfigError
    from mclab.store.files import plainly

    if sys.stdout.isatty():
        raise ConfigError(f"--format parquet: the output is binary; redirect it to a file, e.g. > {name}")
    with plainly(Path("standard output")):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return None


def remark(*lines: str) -> None:
    """Print lines to standard error: messages for people, not results."""
    _write(sys.stderr, "\n".join(one_line(without_passwords(line)) for line in lines))


def traceback_without_passwords(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Print a traceback without passwords; it replaces `sys.excepthook`."""
    lines = "".join(traceback.format_exception(kind, error, where)).rstrip("\n").split("\n")
    remark(*lines)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # it was closed before Python started
        return
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except OSError as error:
        _drop(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            from mclab.config.strict import ConfigError

            raise ConfigError(f"standard output: {(error.strerror or str(error)).lower()}") from error


def _drop(stream: TextIO) -> None:
    """Redirect `stream` to /dev/null, so that runs continue and the interpreter ends without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def width(default: int = 120) -> int:
    """Return the width of the terminal or the value of COLUMNS; `default` if there is neither."""
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    return get_terminal_size().columns if at_terminal or "COLUMNS" in os.environ else default


def in_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return the rows as text with aligned columns, one line each. Long texts are cut, except in the last column.

    The columns whose numbers are in `right` are aligned right.
    """
    shown = [[one_line(text) for text in row] for row in rows]
    return aligned([[*(cut(text, _LONGEST) for text in row[:-1]), *row[-1:]] for row in shown], right)


def section(head: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a heading, and below it the rows, aligned and indented; `none` if there are no rows."""
    return f"{head}\n{indent(in_columns(rows or [('none', '')]), '  ')}"


def written(paths: Sequence[Path]) -> list[str]:
    """Return one line for each folder, e.g. `wrote into runs/gating/tables: table.csv, table.md`."""
    folders = dict.fromkeys(path.parent for path in paths)
    names = {folder: [path.name for path in paths if path.parent == folder] for folder in folders}
    return [f"wrote into {folder}: {', '.join(inside)}" for folder, inside in names.items()]

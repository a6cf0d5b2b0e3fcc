"""Results go to standard output, everything else to standard error. Either may be closed early by its reader.

Control characters are written out and passwords removed; results for programs are data and stay as they are.
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

#: Longer texts in a column are cut.
_LONGEST = 60


def result(text: str) -> None:
    """A result for people. Raises `ConfigError` where it cannot be written; a closed pipe is no error."""
    _write(sys.stdout, printable(without_passwords(text)))


def result_json(value: Any) -> None:
    """A result for programs: strict JSON, in ASCII, so that no terminal's encoding can spoil it."""
    _write(sys.stdout, json.dumps(value, indent=1, allow_nan=False))


def content(data: bytes, name: str) -> None:
    """A file's content as the result. Raises `ConfigError` for one that a terminal cannot show."""
    if not name.endswith(".parquet"):
        text = data.decode().removesuffix("\n")
        return _write(sys.stdout, printable(text) if sys.stdout is not None and sys.stdout.isatty() else text)
    from mclab.config.strict import ConfigError
    from mclab.store.files import plainly

    if sys.stdout.isatty():
        raise ConfigError(f"--format parquet: is binary; send it to a file, e.g. > {name}")
    with plainly(Path("standard output")):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return None


def remark(*lines: str) -> None:
    """What a person should know besides the results, one line each."""
    _write(sys.stderr, "\n".join(one_line(without_passwords(line)) for line in lines))


def traceback_without_passwords(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Replaces `sys.excepthook`."""
    lines = "".join(traceback.format_exception(kind, error, where)).rstrip("\n").split("\n")
    remark(*lines)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed before we started
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
    """Send what is written from now on to /dev/null: runs continue, and the interpreter ends without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def width(default: int = 120) -> int:
    """Columns of the terminal, or what COLUMNS says; the default where there is neither."""
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    return get_terminal_size().columns if at_terminal or "COLUMNS" in os.environ else default


def in_columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned rows; each text on one line, long ones cut except in the last column."""
    shown = [[one_line(text) for text in row] for row in rows]
    return aligned([[*(cut(text, _LONGEST) for text in row[:-1]), *row[-1:]] for row in shown], right)


def section(head: str, rows: Sequence[Sequence[str]]) -> str:
    """A heading, and aligned rows indented below it; `none` where there is no row."""
    return f"{head}\n{indent(in_columns(rows or [('none', '')]), '  ')}"


def written(paths: Sequence[Path]) -> list[str]:
    """`wrote into runs/gating/tables: table.csv, table.md`, one line for each folder."""
    folders = dict.fromkeys(path.parent for path in paths)
    names = {folder: [path.name for path in paths if path.parent == folder] for folder in folders}
    return [f"wrote into {folder}: {', '.join(inside)}" for folder, inside in names.items()]

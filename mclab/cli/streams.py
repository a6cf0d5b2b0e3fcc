"""Results go to standard output, everything else to standard error; and whoever reads either may leave early."""

import json
import os
import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TextIO


def result(text: str) -> None:
    """A result. Raises `ConfigError` where it cannot be written; a reader who has left is no error."""
    _write(sys.stdout, text)


def result_json(value: Any) -> None:
    """A result for programs: strict JSON, in ASCII, so that no terminal's encoding can spoil it."""
    result(json.dumps(value, indent=1, allow_nan=False))


def content(data: bytes, name: str) -> None:
    """A file's content as the result. Raises `ConfigError` for one that a terminal cannot show."""
    if not name.endswith(".parquet"):
        return result(data.decode().removesuffix("\n"))
    from mclab.config.strict import ConfigError
    from mclab.store.files import plainly

    if sys.stdout.isatty():
        raise ConfigError(f"--format parquet: is binary; send it to a file, e.g. > {name}")
    with plainly(Path("standard output")):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return None


def remark(text: str) -> None:
    """What a person should know beside the results."""
    _write(sys.stderr, text)


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
    """Let what is written from now on go nowhere, so that the runs go on and the interpreter ends without a word."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def width() -> int:
    """Columns of the terminal, or what COLUMNS says; 120 where there is neither."""
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    return get_terminal_size().columns if at_terminal or "COLUMNS" in os.environ else 120

"""Files that are written whole or not at all, and the operating system's refusals in one plain line."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mclab import atomic_files
from mclab.config.strict import ConfigError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM)


class StoreError(ConfigError):
    """The run folder cannot be used. The message is one line: what, where, and what to do about it."""


@contextmanager
def plainly(path: Path, doing: str = "write") -> Iterator[None]:
    """Turn an `OSError` from the body into a `StoreError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise StoreError(_line(error, path, doing)) from error


def _line(error: OSError, path: Path, doing: str) -> str:
    if error.errno in _FULL:
        return f"{path}: the disk is full; what was stored before is unharmed: free some space, give the command again"
    if error.errno == errno.EROFS:
        return f"{path}: cannot {doing}, the file system is read-only; give another --out"
    if error.errno in _DENIED:
        return f"{path}: cannot {doing}, permission denied; give another --out"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{path}: cannot {doing}, a file stands where a folder must be; give another --out"
    return f"{path}: cannot {doing}: {error.strerror or error}"


def write_whole(path: Path, data: bytes) -> None:
    """As `mclab.atomic_files.write_whole`, but raises `StoreError`."""
    with plainly(path):
        atomic_files.write_whole(path, data)


def move_aside(path: Path) -> Path:
    """Rename a damaged file so that nothing of it is lost; the new name tells what it is."""
    aside, count = path.with_name(f"{path.name}.damaged"), 1
    while os.path.lexists(aside):
        count += 1
        aside = path.with_name(f"{path.name}.damaged{count}")
    with plainly(path, "move a damaged file aside"):
        os.replace(path, aside)
    return aside

"""Files of a run folder: written whole or not at all, JSON as bytes, and paths that users give, checked beforehand.

What the operating system refuses is said in one plain line.
"""

import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mclab import atomic_files
from mclab.config.strict import ConfigError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM)
#: Bytes that a file system takes for a name, for a path, and what the name of a temporary file has beside its own.
MOST, MOST_IN_ALL, BESIDE = 255, 4095, len("..0123456789abcdef.tmp")


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
        return f"{path}: cannot {doing}, there is a file where a folder must be; give another --out"
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


def json_bytes(value: Any, indent: int | None = 1) -> bytes:
    """Valid JSON and a newline; NaN and infinities are null, and text that is no UTF-8 survives as an escape."""
    text = json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def plain(value: Any) -> Any:
    """JSON has no NaN, and provenance may hold what is no JSON at all: a version, a device, a numpy scalar."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain(value.item()) if hasattr(value, "item") else str(value)


def usable(path: Path, what: str, beside: int = 0) -> Path:
    """The path. Raises `ConfigError` where no file system has room for it, its name longer by `beside` bytes."""
    for part in path.parts:
        most = MOST - (beside if part == path.name else 0)
        if (length := len(os.fsencode(part))) > most:
            raise ConfigError(f"{what}: {part[:24]}… has {length} bytes, a name has at most {most}; take a shorter one")
    if (length := len(os.fsencode(path))) > MOST_IN_ALL:
        raise ConfigError(f"{what}: the path has {length} bytes, at most {MOST_IN_ALL} are possible; take another")
    return path


@contextmanager
def named_as_given(given: Path, say: Callable[[str], None]) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """The absolute form of a folder, whatever becomes of the current one, and what says lines about it.

    Both those lines and a `ConfigError` from the body name the folder as its user gave it.
    """
    place = given.absolute()
    before, after = str(place), str(place) if len(place.parts) == 1 else str(given)

    def as_given(line: str) -> None:
        say(line.replace(before, after))

    try:
        yield place, as_given
    except ConfigError as error:
        error.renamed(before, after)
        raise

"""Files of a run folder: write them whole or not at all, make JSON bytes, and check paths that users give.

An error of the operating system becomes a message of one plain line.
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
#: The most bytes of a file's name and of a path; the bytes by which the name of a temporary file is longer than that
#: of the file.
MOST, MOST_IN_ALL, BESIDE = 255, 4095, len("..0123456789abcdef.tmp")


class StoreError(ConfigError):
    """The run folder cannot be used.

    The message is one line that says what is wrong, where, and what to do about it.
    """


@contextmanager
def plainly(path: Path, doing: str = "write") -> Iterator[None]:
    """Turn an `OSError` from the body into a `StoreError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise StoreError(_line(error, path, doing)) from error


def _line(error: OSError, path: Path, doing: str) -> str:
    if error.errno in _FULL:
        return f"{path}: the disk is full; results stored before are unharmed: free some space and repeat the command"
    if error.errno == errno.EROFS:
        return f"{path}: cannot {doing}: the file system is read-only; give another folder with --out"
    if error.errno in _DENIED:
        return f"{path}: cannot {doing}: permission denied; give another folder with --out"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{path}: cannot {doing}: there is a file where a folder must be; give another folder with --out"
    return f"{path}: cannot {doing}: {error.strerror or error}"


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` as `mclab.atomic_files.write_whole` does, but raise `StoreError` for an `OSError`."""
    with plainly(path):
        atomic_files.write_whole(path, data)


def move_aside(path: Path) -> Path:
    """Rename a damaged file to `<name>.damaged` (or `.damaged2`, ...), so that nothing is lost; return the new path."""
    aside, count = path.with_name(f"{path.name}.damaged"), 1
    while os.path.lexists(aside):
        count += 1
        aside = path.with_name(f"{path.name}.damaged{count}")
    with plainly(path, "move a damaged file aside"):
        os.replace(path, aside)
    return aside


def json_bytes(value: Any, indent: int | None = 1) -> bytes:
    """Return `value` as valid JSON and a newline. NaN and infinities become null; text that is no UTF-8 is escaped."""
    text = json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def plain(value: Any) -> Any:
    """Return `value` as data for JSON: NaN and infinities as null, numpy scalars as numbers, other objects as text.

    Provenance may hold such objects: a version, a device.
    """
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
    """Return `path`. Raises `ConfigError` if it is too long for a file system.

    `beside` is a number of bytes that may later be added to its name.
    """
    for part in path.parts:
        most = MOST - (beside if part == path.name else 0)
        if (length := len(os.fsencode(part))) > most:
            raise ConfigError(
                f"{what}: the name {part[:24]}… has {length} bytes, but a name has at most {most}; take a shorter one"
            )
    if (length := len(os.fsencode(path))) > MOST_IN_ALL:
        raise ConfigError(
            f"{what}: the path has {length} bytes, but at most {MOST_IN_ALL} are possible; take a shorter path"
        )
    return path


@contextmanager
def named_as_given(given: Path, say: Callable[[str], None]) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """Yield the absolute path of the folder `given`, and a function that passes lines about it to `say`.

    The absolute path stays right if the current directory changes. These lines, and a `ConfigError` from the body, name
    the folder as the user gave it.
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

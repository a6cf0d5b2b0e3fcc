"""This module writes files as a whole or not at all, and reads files without the risk of waiting for ever on a pipe."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

#: Error numbers of a file system (often a network one) that cannot sync a directory.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the content of `path` by `data`: write a temporary file in its folder, fsync, rename, fsync the folder.

    With `durable=False` nothing is synced: the file survives a crash of the process, but not one of the machine.

    Raises `OSError`. Then no temporary file is left, and `path` has its old content; it has the new content if only the
    fsync of the folder failed. Two machines that share the folder may write `path` at the same time: the last write
    wins.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


class NoFileError(OSError):
    """The path is a pipe, a socket or a device and not a file; to open it could wait for ever."""


def require_file(path: Path) -> None:
    """Raise `NoFileError` if `path` is a pipe, a socket or a device, and another `OSError` if it does not exist."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # reading a folder raises an error anyway
        raise NoFileError(errno.EINVAL, "it is a pipe or a device, not a file")


def read_whole(path: Path) -> bytes:
    """Return the file's bytes. Raises the errors of `require_file`."""
    require_file(path)
    return path.read_bytes()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)

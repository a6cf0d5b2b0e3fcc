"""Files that are written whole or not at all, and read without waiting."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

#: What a network file system answers where a directory cannot be synced.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace `path` by `data`: temporary file beside it, fsync, rename, fsync of the folder.

    What is not `durable` is not synced: it outlives the process, not the machine.

    Raises `OSError`; then no temporary file is left and `path` is what it was before, or all new where nothing but the
    folder's fsync failed. Two machines that share the folder may write the same path at once: the last one's stays.
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
    """A pipe, a socket or a device where a file should be: to open one can wait for ever."""


def require_file(path: Path) -> None:
    """Raise `NoFileError` for what is none, another `OSError` where there is nothing."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to read a folder is an error already
        raise NoFileError(errno.EINVAL, "it is a pipe or a device, not a file")


def read_whole(path: Path) -> bytes:
    """The file's bytes. Raises as `require_file` does."""
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

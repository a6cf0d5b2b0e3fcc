"""Let only one process write a run folder, and never overwrite files of other programs.

The operating system holds the lock, so a killed process cannot leave it behind.
"""

import json
import os
import re
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mclab.atomic_files import read_whole
from mclab.passwords import command_line, without_passwords
from mclab.store.files import StoreError, plainly

#: The most letters of a command line in a message, so that the message stays one line.
_LONGEST = 160
#: The first bytes of a lock file that contains its holder's process id.
_HEAD = b'{"pid": '
#: The names of temporary files that a killed `mclab.atomic_files.write_whole` leaves: `.<name>.<16 hex digits>.tmp`.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_RECORD = re.compile(r"[0-9a-f]{16}\.json")
#: Folders whose files every command writes again at its end, under names that other programs may use too.
_REPORTS = ("tables", "plots")


class Lock:
    """The lock of a run folder, held from construction to `release`.

    Raises `StoreError`, which names the holder, if another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._lock = FileLock(self._path, thread_local=False)
        with plainly(self._path):
            self._refuse_foreign()
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise StoreError(
                    f"{folder} is in use by {_holder(self._path)}; wait for its end, or give another folder with --out"
                ) from None
            try:
                self._sign(_who())
            except BaseException:
                self._lock.release()
                raise

    def release(self) -> None:
        """Release the lock and empty its file.

        The file stays, since removing it could break the lock of the next holder.
        """
        if self._lock.is_locked:
            try:
                self._sign("")
            finally:
                self._lock.release()

    def _sign(self, text: str) -> None:
        self._path.write_text(text, encoding="utf-8")

    def _refuse_foreign(self) -> None:
        """Raise `StoreError` if the lock's name belongs to a file that no holder has written."""
        if not os.path.lexists(self._path):
            return
        if stat.S_ISREG(self._path.lstat().st_mode):
            with suppress(PermissionError), open(self._path, "rb") as file:
                if file.read(len(_HEAD)) not in (b"", _HEAD):
                    raise StoreError(
                        f"{self._path}: this file exists and is no lock of mclab; give another folder with --out"
                    )
            return
        raise StoreError(
            f"{self._path}: this is no regular file, so it cannot be a lock; give another folder with --out"
        )


def _who() -> str:
    given = command_line([os.path.basename(sys.argv[0]), *sys.argv[1:]])
    command = given.encode(errors="replace").decode()
    return json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
            "command": command if len(command) <= _LONGEST else f"{command[:_LONGEST]} …",
        },
        ensure_ascii=False,
    )


def _holder(path: Path) -> str:
    try:
        who = json.loads(read_whole(path))
        return without_passwords(f"process {who['pid']} on {who['host']} since {who['since']} ({who['command']})")
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def is_own_folder(path: Path) -> bool:
    """Return whether `path` is a folder and no symbolic link. A link may lead to a folder of another program."""
    return path.is_dir() and not path.is_symlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a killed writer. Only the holder of the lock may call it."""
    with plainly(folder, "remove a temporary file"):
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
                path.unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    with plainly(folder, "read"):
        return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def refuse_foreign(folder: Path, marks: Sequence[str], given: Mapping[str, bytes]) -> None:
    """Raise `StoreError` if a command would overwrite files of other programs.

    A folder with a record, or with one of the files named in `marks`, is a run folder already and is accepted. In any
    other folder, a file named in `given` must be absent or have exactly the given content, and the folders `tables` and
    `plots` must be empty or absent.
    """
    if any((folder / name).exists() for name in marks) or any(map(_RECORD.fullmatch, _names(folder / "records"))):
        return
    for name, content in given.items():
        path = folder / name
        with plainly(path, "read"):
            if path.exists() and not (path.is_file() and path.read_bytes() == content):
                raise StoreError(
                    f"{path}: this file exists and was not written by mclab; give another folder with --out"
                )
    for path in (folder / name for name in _REPORTS):
        with plainly(path, "read"):
            if path.is_dir() and any(path.iterdir()):
                raise StoreError(
                    f"{path}: this folder has files that mclab did not write; give another run folder with --out"
                )

"""One writer per run folder: a lock of the operating system, which no killed process can leave behind."""

import json
import os
import socket
import stat
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mclab.atomic_files import read_whole
from mclab.passwords import command_line, without_passwords
from mclab.store.files import StoreError, plainly

#: A command line longer than this is cut: the line that names the holder is one line.
_LONGEST = 160
#: How a holder's signature begins.
_HEAD = b'{"pid": '


class Lock:
    """Held from construction to `release`. Raises `StoreError` that names the holder where another process has it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._lock = FileLock(self._path, thread_local=False)
        with plainly(self._path):
            self._refuse_foreign()
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise StoreError(
                    f"{folder} is in use by {_holder(self._path)}; wait for it, or give another --out"
                ) from None
            try:
                self._sign(_who())
            except BaseException:
                self._lock.release()
                raise

    def release(self) -> None:
        """Let go; the file stays, empty, because removing it could take a lock from under its next holder."""
        if self._lock.is_locked:
            try:
                self._sign("")
            finally:
                self._lock.release()

    def _sign(self, text: str) -> None:
        self._path.write_text(text, encoding="utf-8")

    def _refuse_foreign(self) -> None:
        """Raise `StoreError` for a file or a link of that name that no holder has signed: it would be lost."""
        if not os.path.lexists(self._path):
            return
        if stat.S_ISREG(self._path.lstat().st_mode):
            with suppress(PermissionError), open(self._path, "rb") as file:
                if file.read(len(_HEAD)) not in (b"", _HEAD):
                    raise StoreError(f"{self._path}: stands there already and is no lock; give another --out")
            return
        raise StoreError(f"{self._path}: is no plain file, so no lock; give another --out")


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

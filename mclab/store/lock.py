"""One writer per run folder: a lock of the operating system, which no killed process can leave behind."""

import json
import os
import shlex
import socket
import sys
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mclab.files import read_whole
from mclab.store.files import StoreError, plainly

#: A command line longer than this is cut: the line that names the holder is one line.
_LONGEST = 160


class Lock:
    """Held from construction to `release`. Raises `StoreError` that names the holder where another process has it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._lock = FileLock(self._path, thread_local=False)
        with plainly(self._path):
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


def _who() -> str:
    given = shlex.join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
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
        return f"process {who['pid']} on {who['host']} since {who['since']} ({who['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"

"""Store the study in a journal file, under a lock of the operating system. A last line torn by a kill is removed."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from mclab.atomic_files import require_file
from mclab.config.strict import ConfigError
from mclab.store.files import plainly

#: The file in the run folder; optuna-dashboard opens it.
NAME = "journal.log"
_POLL = 0.01
#: How the first line of a journal begins.
_START = b'{"op_code":'
#: The errors that Optuna raises for a line of JSON that it has not written.
_NO_STUDY = (LookupError, TypeError, ValueError, AttributeError, AssertionError)
_WAY = "restore the file, or give another --storage or --out (the records still hold all measured results)"


class _Append(JournalFileOpenLock):
    """A lock of the operating system.

    It replaces Optuna's lock, which lasts for half a minute after its holder was killed.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self._lock = FileLock(f"{path}.append", thread_local=False)

    def acquire(self) -> bool:
        """Wait for the lock, then remove the half-written line of a holder that was killed or met a full disk."""
        self._lock.acquire(poll_interval=_POLL)
        try:
            if _torn(self._path):
                mend(self._path, self._say)
        except BaseException:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()


class _File(JournalFileBackend):
    """Optuna's journal file; an error of the operating system, such as a full disk, becomes a message of one line."""

    def __init__(self, path: Path, lock: _Append) -> None:
        super().__init__(str(path), lock_obj=lock)
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append the logs as Optuna does. Raises `StoreError`."""
        with plainly(self._path):
            super().append_logs(logs)


class Journal:
    """A journal file that any number of processes may write, also on several machines that share its folder.

    Raises `StoreError` if the file cannot be created, `ConfigError` if it is no journal.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        with plainly(path, "read"), suppress(FileNotFoundError):
            require_file(path)
        self.path, self._say = path, say
        self._append, self._claims = _Append(path, say), FileLock(f"{path}.claim", thread_local=False)

    @property
    def where(self) -> str:
        """The path of the journal."""
        return str(self.path)

    def open(self) -> BaseStorage:
        """Mend the file and return Optuna's storage. Call it under `guard`."""
        with plainly(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._append.acquire()
            try:
                mend(self.path, self._say)
            finally:
                self._append.release()
            try:
                return JournalStorage(_File(self.path, self._append))
            except ConfigError:
                raise
            except (*_NO_STUDY, OptunaError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise ConfigError(
                    f"{self.path}: the journal has lines that no study can be read from ({reason}); {_WAY}"
                ) from None

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Let one process at a time run the body. `what` is not used, since one lock guards everything."""
        with plainly(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._claims.acquire(poll_interval=_POLL)
        try:
            yield
        finally:
            self._claims.release()

    def close(self) -> None:
        """Do nothing: the file is not kept open."""


def mend(path: Path, say: Callable[[str], None]) -> None:
    """Remove a damaged end of a journal after its last whole line, and report that to `say`.

    Raises `ConfigError` if an earlier line is damaged, since a kill cannot cause that, and if the file is no journal.
    """
    if not path.exists():
        return
    data = path.read_bytes()
    *lines, rest = data.split(b"\n")
    broken = [number for number, line in enumerate(lines) if not _is_entry(line)]
    if broken and broken[0] < len(lines) - 1:
        raise ConfigError(
            f"{path}:{broken[0] + 1}: this line of the journal is damaged and further lines follow; {_WAY}"
        )
    whole = lines[: broken[0]] if broken else lines
    if data and not whole and not data.startswith(_START[: len(data)]):
        raise ConfigError(f"{path}: this file is no journal of a search; give another --storage or --out")
    if rest or broken:
        with open(path, "r+b") as file:
            file.truncate(sum(len(line) + 1 for line in whole))
            os.fsync(file.fileno())
        say(f"{path}: the last line was incomplete and was removed; the journal now ends after line {len(whole)}")


def _is_entry(line: bytes) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and "op_code" in entry


def _torn(path: Path) -> bool:
    """Return whether the file has content that does not end with a newline."""
    with suppress(OSError), open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
    return False

"""Where a study is stored (a journal file or a database), and how requests are repeated while it does not answer."""

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from optuna.storages import BaseStorage
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from mclab.config.strict import ConfigError
from mclab.passwords import without_passwords

#: Seconds for which a study may fail to answer. A database that is restarted or replaced by a standby needs less. A
#: process that waits longer occupies cores, or a place in a queue, for a search that may never continue.
PATIENCE = 180.0
#: Seconds before the first retry, and the longest pause between two retries; each pause is twice the last one.
FIRST, LONGEST = 0.5, 15.0
#: Errors of the operating system for a file on a network disk that is out of reach. A full disk is not among them,
#: since waiting does not help.
_NETWORK = {
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.ECONNABORTED, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.EREMOTEIO),
}

T = TypeVar("T")
Say = Callable[[str], None]


class StudyStorage(Protocol):
    """A place where studies are stored."""

    @property
    def where(self) -> str:
        """The place in words, for a message."""

    def open(self) -> BaseStorage:
        """Return Optuna's storage."""

    def guard(self, what: str) -> AbstractContextManager[None]:
        """Let one process at a time run the body."""

    def close(self) -> None:
        """Close the connections or files."""


class ConnectionLostError(Exception):
    """A connection is lost.

    This is not an error class of SQLAlchemy. Optuna would repeat a request after such an error, although the database
    may already have executed it.
    """


class UnansweredError(ConfigError):
    """A study did not answer for longer than `PATIENCE`. The message is one line and says what to do."""


class Retrying:
    """Repeats an exchange with a study until the study answers.

    An exchange that was interrupted may have been executed, with only its answer lost. So it must be harmless to repeat
    it.
    """

    def __init__(self, place: StudyStorage, say: Say) -> None:
        self._place, self._say = place, say
        self._since: float | None = None

    def __call__(self, exchange: Callable[[], T]) -> T:
        """Return the result of `exchange`, which is repeated until the study answers.

        Raises `UnansweredError` after `PATIENCE` seconds, and any error that does not mean that the study is out of
        reach.
        """
        pause = FIRST
        while True:
            try:
                found = exchange()
            except Exception as error:
                reason = unreachable(error)
                if reason is None:
                    raise
                self._wait(pause, reason, error)
                pause = min(2 * pause, LONGEST)
                continue
            if self._since is not None:
                self._say(f"{self._place.where} answers again after {time.monotonic() - self._since:.0f} s")
                self._since = None
            return found

    def _wait(self, pause: float, reason: str, error: Exception) -> None:
        """Wait for `pause` seconds. Raises `UnansweredError` if the study has not answered for `PATIENCE` seconds."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            kept = "runs that end meanwhile are stored"
            self._say(f"{self._place.where} does not answer ({reason}): trying again for {PATIENCE:.0f} s; {kept}")
        left = self._since + PATIENCE - now
        if left <= 0:
            raise UnansweredError(
                f"{self._place.where} has not answered for {now - self._since:.0f} s ({reason}); start it again and "
                f"repeat the command: all stored results are kept and entered into the study, and the search continues"
            ) from error
        time.sleep(min(pause, left))


def unreachable(error: Exception) -> str | None:
    """Return why a study is out of reach, if `error` or one of its causes means that; `None` for other errors."""
    for each in _chain(error):
        lost = isinstance(each, DBAPIError) and each.connection_invalidated
        if lost or isinstance(each, ConnectionLostError | OperationalError | InterfaceError):
            return without_passwords(" ".join(str(getattr(each, "orig", None) or each).split()))[:200]
        if isinstance(each, OSError) and each.errno in _NETWORK:
            return str(each.strerror)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__

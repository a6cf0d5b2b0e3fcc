"""Where a study is kept, a journal file or a database, and asking it again while it does not answer."""

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from optuna.storages import BaseStorage
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from mclab.config.strict import ConfigError
from mclab.passwords import without_passwords

#: Seconds for which a study may be silent. A database starts again, or a standby takes its place, in less; who waits
#: longer holds cores, or a place in a queue, for a search that may never continue.
PATIENCE = 180.0
#: Seconds until the first further try and, as each pause is twice the one before, at most between two.
FIRST, LONGEST = 0.5, 15.0
#: How the operating system refuses a file on a network disk that is away; a full disk does not heal by waiting.
_NETWORK = {
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.ECONNABORTED, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.EREMOTEIO),
}

T = TypeVar("T")
Say = Callable[[str], None]


class StudyStorage(Protocol):
    """Where studies are kept."""

    @property
    def where(self) -> str:
        """Where that is, to be read."""

    def open(self) -> BaseStorage:
        """Optuna's storage."""

    def guard(self, what: str) -> AbstractContextManager[None]:
        """One process at a time."""

    def close(self) -> None:
        """Let go of it."""


class ConnectionLostError(Exception):
    """A connection that is lost.

    No error of SQLAlchemy's: those Optuna tries again itself, although the database may have done what was asked.
    """


class UnansweredError(ConfigError):
    """A study that was silent for longer than `PATIENCE`. The message is one line and says what to do."""


class Retrying:
    """Repeats an exchange with a study while nothing answers.

    An exchange that was cut may have been carried out, with only the answer lost: asking again must do no harm.
    """

    def __init__(self, place: StudyStorage, say: Say) -> None:
        self._place, self._say = place, say
        self._since: float | None = None

    def __call__(self, exchange: Callable[[], T]) -> T:
        """What the exchange gives. Raises `UnansweredError`, and whatever is no sign of a study that is away."""
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
        """Wait a little, for as long as there is patience."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            kept = "what is trained is stored meanwhile"
            self._say(f"{self._place.where} does not answer ({reason}): trying again for {PATIENCE:.0f} s; {kept}")
        left = self._since + PATIENCE - now
        if left <= 0:
            raise UnansweredError(
                f"{self._place.where} has not answered for {now - self._since:.0f} s ({reason}); bring it back and "
                f"give the same command again: what is stored stays, the study is told of it, and the search continues"
            ) from error
        time.sleep(min(pause, left))


def unreachable(error: Exception) -> str | None:
    """Why a study does not answer, for an error that says so: itself, or one that it was raised from."""
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

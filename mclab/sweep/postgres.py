"""Store the study in PostgreSQL, for processes on any number of machines."""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from urllib.parse import quote, quote_plus

import sqlalchemy
from optuna.storages import BaseStorage, RDBStorage

from mclab.config.strict import ConfigError
from mclab.passwords import HIDDEN, without_password, without_passwords
from mclab.report.text import cut
from mclab.sweep.storage import ConnectionLostError

_POLL = 0.02
#: Settings for libpq, unless the address has its own. A server must accept a connection within 10 seconds. A
#: connection counts as lost if its server has not answered for half a minute. Times are in seconds, the last one in
#: milliseconds.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


class Postgres:
    """A PostgreSQL database that holds a study. Its advisory locks are released by the server when their holder dies.

    Raises `ConfigError` if the driver is missing or no server answers.
    """

    def __init__(self, address: str) -> None:
        try:
            url = sqlalchemy.engine.make_url(address)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise ConfigError(
                f"--storage: {without_password(address)!r} is no address of a database; "
                "write postgresql://USER:PASSWORD@HOST/DATABASE"
            ) from None
        driver = url.drivername.partition("+")[2] or "psycopg"
        if find_spec(driver) is None:
            raise ConfigError(
                f"--storage: a PostgreSQL database needs the package {driver}; install it with: "
                "pip install 'mclab[postgres]'"
            )
        self._url = url.set(drivername=f"postgresql+{driver}")
        libpq = driver.startswith("psycopg")
        self._patience = {key: value for key, value in _PATIENCE.items() if libpq and key not in url.query}
        self._engine = sqlalchemy.create_engine(
            self._url, isolation_level="AUTOCOMMIT", pool_pre_ping=True, connect_args=self._patience
        )
        self._engines = [self._engine]
        self._held = threading.local()
        with self.plainly():
            self._engine.connect().close()
        sqlalchemy.event.listen(self._engine, "handle_error", self._noticed)

    @property
    def where(self) -> str:
        """The address of the database, without the password."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=True)

    def open(self) -> BaseStorage:
        """Return Optuna's storage. Call it under `guard`: two processes that create the tables at once would fail."""
        storage = RDBStorage(
            self._url.render_as_string(hide_password=False),
            engine_kwargs={"pool_pre_ping": True, "pool_size": 2, "connect_args": self._patience},
        )
        sqlalchemy.event.listen(storage.engine, "handle_error", self._noticed)
        sqlalchemy.event.listen(storage.engine, "checkout", self._still_locked)
        self._engines.append(storage.engine)
        return storage

    def _noticed(self, context: sqlalchemy.engine.ExceptionContext) -> None:
        """Raise `ConnectionLostError` if a connection is lost or cannot be made.

        An idle connection is only replaced.
        """
        if not context.is_pre_ping and (context.is_disconnect or context.connection is None):
            raise ConnectionLostError(self.reason(context.original_exception))

    def _still_locked(self, *_: object) -> None:
        """Raise `ConnectionLostError` if this thread holds a lock and the lock's connection is lost.

        The server releases a lock when its connection is lost, so the holder must not continue. Without this check
        nobody would notice that a server has started again, because Optuna's own connections are replaced silently.
        """
        connection: sqlalchemy.Connection | None = getattr(self._held, "connection", None)
        if connection is None:
            return
        if connection.invalidated:
            raise ConnectionLostError("the connection that held the lock is lost")
        connection.scalar(sqlalchemy.select(1))

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Let one process at a time run the body; only calls with the same `what` exclude each other."""
        key = int.from_bytes(hashlib.sha256(f"mclab {what}".encode()).digest()[:8], signed=True)
        with self._engine.connect() as connection:
            while not connection.scalar(sqlalchemy.select(sqlalchemy.func.pg_try_advisory_lock(key))):
                time.sleep(_POLL)
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = None
                # a lost connection holds no lock, so there is nothing to release
                with suppress(ConnectionLostError, sqlalchemy.exc.SQLAlchemyError):
                    connection.scalar(sqlalchemy.select(sqlalchemy.func.pg_advisory_unlock(key)))

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Turn an error of the database into a `ConfigError` of one line."""
        try:
            yield
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise ConfigError(f"--storage: {self.where}: {self.reason(error)}") from error

    def reason(self, error: BaseException) -> str:
        """Return what a driver says, in one line and without the password.

        A driver may quote parts of an address, so the password alone is replaced too.
        """
        text, secret = " ".join(str(getattr(error, "orig", None) or error).split()), str(self._url.password or "")
        for form in {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)} - {""}:
            text = text.replace(form, HIDDEN)
        return cut(without_passwords(text), 200)

    def close(self) -> None:
        """Close the connections."""
        for engine in self._engines:
            engine.dispose()

"""The study in PostgreSQL, for processes on any number of machines."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.parse import quote, quote_plus

import sqlalchemy
from optuna.storages import BaseStorage, RDBStorage

from mclab.config.strict import ConfigError
from mclab.passwords import HIDDEN, without_password, without_passwords
from mclab.report.align import cut

_POLL = 0.02
#: Seconds in which a server must take a connection, where the address says nothing else.
_PATIENCE = 10


class Postgres:
    """A database of a PostgreSQL server, and its advisory locks, which the server lets go when their holder dies.

    Raises `ConfigError` where the driver is missing or nothing answers.
    """

    def __init__(self, address: str) -> None:
        try:
            url = sqlalchemy.engine.make_url(address)
        except (sqlalchemy.exc.ArgumentError, ValueError):
            raise ConfigError(
                f"--storage: {without_password(address)!r} is no address; write postgresql://USER:PASSWORD@HOST/DATABASE"
            ) from None
        driver = url.drivername.partition("+")[2] or "psycopg"
        if find_spec(driver) is None:
            raise ConfigError(f"--storage: PostgreSQL needs the package {driver}: pip install 'mclab[postgres]'")
        self._url = url.set(drivername=f"postgresql+{driver}")
        mute = driver.startswith("psycopg") and "connect_timeout" not in url.query
        self._patience = {"connect_timeout": _PATIENCE} if mute else {}
        self._engine = sqlalchemy.create_engine(
            self._url, isolation_level="AUTOCOMMIT", pool_pre_ping=True, connect_args=self._patience
        )
        self._engines = [self._engine]
        with self.plainly():
            self._engine.connect().close()

    @property
    def told(self) -> str:
        """Where the study is, without the password."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=True)

    def open(self) -> BaseStorage:
        """Optuna's storage. To be called under `guard`: two that make the tables at once trip over each other."""
        storage = RDBStorage(
            self._url.render_as_string(hide_password=False),
            engine_kwargs={"pool_pre_ping": True, "pool_size": 2, "connect_args": self._patience},
        )
        self._engines.append(storage.engine)
        return storage

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """One process at a time for what is guarded."""
        key = int.from_bytes(hashlib.sha256(f"mclab {what}".encode()).digest()[:8], signed=True)
        with self._engine.connect() as connection:
            while not connection.scalar(sqlalchemy.select(sqlalchemy.func.pg_try_advisory_lock(key))):
                time.sleep(_POLL)
            try:
                yield
            finally:
                connection.scalar(sqlalchemy.select(sqlalchemy.func.pg_advisory_unlock(key)))

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """A server that does not answer, or no longer, in a line."""
        try:
            yield
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise ConfigError(f"--storage: {self.told}: {self.reason(error)}") from error

    def reason(self, error: BaseException) -> str:
        """What a driver says, in a line. It may quote the parts of an address, and so the password by itself."""
        text, secret = " ".join(str(getattr(error, "orig", None) or error).split()), str(self._url.password or "")
        for form in {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)} - {""}:
            text = text.replace(form, HIDDEN)
        return cut(without_passwords(text), 200)

    def close(self) -> None:
        """Let go of the connections."""
        for engine in self._engines:
            engine.dispose()

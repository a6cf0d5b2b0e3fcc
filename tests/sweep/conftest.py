"""A folder to stand in, a training that costs nothing, and a PostgreSQL server where its programs are."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest

from mclab.sweep.postgres import Postgres
from mclab.sweep.storage import StudyStorage
from tests.sweep.bench import FakeTraining, journal

_NUMBERS = count()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test stands in an empty folder, and nothing is drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mclab.report.sweeps.plots.write_plots", lambda *_: [])
    monkeypatch.setattr("mclab.sweep.command.RESAMPLES", 3)  # enough for what no test here looks at
    return tmp_path


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> FakeTraining:
    """In place of the training of this process."""
    fake = FakeTraining()
    monkeypatch.setattr("mclab.train.train_pack", fake)
    return fake


def program(name: str) -> str | None:
    """A program of PostgreSQL's: on the path, or where Debian keeps it."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


def _unprivileged(words: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root; as anybody else it runs as that."""
    if os.getuid() != 0:
        return words
    return ["setpriv", "--reuid=nobody", f"--regid={pwd.getpwnam('nobody').pw_gid}", "--clear-groups", *words]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on loopback that may go away and come back. `address` lacks the name of a database."""

    control: str
    folder: str
    port: int

    @property
    def address(self) -> str:
        """Where it is, up to the name of the database."""
        return f"postgresql://mclab@127.0.0.1:{self.port}"

    def start(self) -> None:
        """Until it answers."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._control("-w", "-o", settings, "-l", f"{self.folder}/log", "start")

    def stop(self) -> None:
        """As a crash does: connections are cut in the middle of whatever is asked."""
        self._control("-m", "immediate", "-w", "stop")

    def _control(self, *words: str) -> None:
        command = _unprivileged([self.control, "-D", f"{self.folder}/data", *words])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def fresh(self) -> str:
        """The address of a new database."""
        name = f"fresh{next(_NUMBERS)}"
        with psycopg.connect(f"{self.address}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.address}/{name}"


@contextmanager
def running() -> Iterator[Server]:
    """A server of one's own."""
    initdb, control = program("initdb"), program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("no PostgreSQL on this machine (initdb, pg_ctl)")
    with tempfile.TemporaryDirectory(prefix="mclab-postgres-") as folder:
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")
        made = [initdb, "-D", f"{folder}/data", "-A", "trust", "-U", "mclab", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(_unprivileged(made), check=True, capture_output=True, cwd=folder)
        found = Server(control, folder, _free_port())
        found.start()
        try:
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="session")
def lasting() -> Iterator[Server]:
    """A server that all tests share."""
    with running() as found:
        yield found


@pytest.fixture
def server(lasting: Server) -> str:
    """The address of a server on loopback, up to the name of the database."""
    return lasting.address


@pytest.fixture
def database(lasting: Server) -> str:
    """The address of a fresh database."""
    return lasting.fresh()


Where = Callable[[], StudyStorage]


@pytest.fixture(params=["journal", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    """Gives, each time, another hold on the same place for studies: as another process has one."""
    address = request.getfixturevalue("database") if request.param == "postgres" else None
    made: list[StudyStorage] = []

    def hold() -> StudyStorage:
        made.append(Postgres(address) if address else journal(tmp_path))
        return made[-1]

    yield hold
    for place in made:
        place.close()

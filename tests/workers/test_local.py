"""Who may come into a cluster that mclab starts, and what becomes of workers that die at their birth."""

import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.workers import open_pool
from mclab.workers.cluster_check import _open
from mclab.workers.local import _Worker

CPU = RunOptions("cpu")
#: How often a `Dying` worker is to die, and where births are noted: its environment is this process's.
DEATHS, NOTES = "MCLAB_TEST_DEATHS", "MCLAB_TEST_NOTES"


def family() -> list[int]:
    """This process and all that it has started."""
    found = [os.getpid()]
    for pid in found:
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def listening() -> list[int]:
    """The TCP ports on which they wait for somebody."""
    inodes = set()
    for pid in family():
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(descriptor))
    ports = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                ports.append(int(fields[1].rpartition(":")[2], 16))
    return ports


def answer(port: int, tls: bool) -> bytes:
    """What a client without a key hears, to a question that every server answers somehow."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain) if tls else plain as client,
    ):
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return client.recv(100)
    return b""


def test_nobody_without_the_key_comes_into_a_local_cluster() -> None:
    with open_pool(CPU, 2) as pool:
        ports = listening()
        assert len(ports) == 5  # scheduler, two nannies, two workers; no web pages
        assert [answer(port, tls=True) for port in ports] == [b""] * 5
        assert {answer(port, tls=False)[:1] for port in ports} <= {b"", b"\x15"}  # an alert of TLS
        client: Any = pool._client  # type: ignore[attr-defined]
        assert client.security.require_encryption
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        for intruder, key in ((address.replace("tls", "tcp"), Security()), (address, Security.temporary())):
            with pytest.raises(OSError, match=r"Connection|TLS"):
                Client(intruder, security=key, timeout=5, set_as_default=False)


class Dying(_Worker):
    """Dies as it is made, so many times."""

    def __init__(self, *args: Any, **options: Any) -> None:
        notes = Path(os.environ[NOTES])
        with open(notes, "a") as file:
            file.write("x")
        if notes.stat().st_size <= int(os.environ[DEATHS]):
            os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(*args, **options)


def fake(runs: Any, *, device: str, progress: Any = None, keep: Any = None) -> list[Outcome]:
    return [Outcome("done", steps=run.seed) for run in runs]


@pytest.mark.parametrize("deaths", [1, 99])
def test_a_worker_that_dies_at_birth_costs_another_start_and_in_the_end_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    monkeypatch.setattr("mclab.workers.local._Worker", Dying)
    monkeypatch.setenv(NOTES, str(tmp_path / "births"))
    monkeypatch.setenv(DEATHS, str(deaths))
    before = set(family())
    if deaths == 1:
        with open_pool(CPU, 2, train=fake) as pool:
            pool.submit((RunConfig(seed=3),))
            assert [result[0].steps for _, result in pool.finished()] == [3]
    else:
        with pytest.raises(ConfigError, match=r"2 processes .* started in 3 attempts \(.*--workers 1") as caught:
            open_pool(CPU, 2).__enter__()
        assert "\n" not in str(caught.value)
        assert (tmp_path / "births").stat().st_size == 6
    assert len(set(family()) - before) <= 1  # multiprocessing's own helper stays


def test_too_few_open_files_are_one_line() -> None:
    code = "from mclab.config.options import RunOptions as R; from mclab.workers import open_pool as o\n"
    code += "try:\n with o(R('cpu'), 2): pass\nexcept ValueError as error: print(error)"
    command = ["bash", "-c", 'ulimit -n 40; exec "$@"', "-", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(
        "--workers: 2 processes need 70 open files, but only 40 are allowed here; raise the limit (ulimit"
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_open_files_are_raised_as_far_as_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    from mclab.workers.local import _check_files

    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (40, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append(limits))
    _check_files(2)
    assert asked == [(70, 4096)]
    with pytest.raises(ConfigError, match="300 processes need 4540 open files, but only 4096 are allowed"):
        _check_files(300)


# ---- a scheduler of the user's ----


def certificates(folder: Path, key: Security) -> dict[str, str]:
    """As Dask's configuration names them."""
    named = {"ca-file": "tls_ca_file", "client.key": "tls_client_key", "client.cert": "tls_client_cert"}
    for name, attribute in named.items():
        (folder / name).write_text(getattr(key, attribute))
    return {f"distributed.comm.tls.{name}": str(folder / name) for name in named}


def test_tls_takes_the_certificates_of_dasks_configuration(tmp_path: Path) -> None:
    key, said = Security.temporary(), list[str]()
    options = {"n_workers": 0, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(protocol="tls", security=key, **options) as cluster:
        there = RunOptions("cpu", scheduler=cluster.scheduler_address)
        with pytest.raises(ConfigError, match=r"tls:// needs certificates, but Dask's .* names none; set distr"):
            open_pool(there).__enter__()
        named = certificates(tmp_path, key)
        with dask.config.set(named), open_pool(there, say=said.append):
            pass
        lost = {**named, "distributed.comm.tls.client.key": str(tmp_path / "lost")}
        with (
            dask.config.set(lost),
            pytest.raises(ConfigError, match=r"cannot read the files that Dask's config"),
        ):
            open_pool(there).__enter__()
        foreign = certificates(tmp_path, Security.temporary())
        with dask.config.set(foreign), pytest.raises(ConfigError, match="TLS certificate does not match"):
            open_pool(there).__enter__()
    assert said
    assert not [line for line in said if "asks for no password" in line]


def test_a_scheduler_open_to_a_network_is_one_warning() -> None:
    said: list[str] = []
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as cluster:
        for host in ("127.0.0.1", "0.0.0.0"):
            address = cluster.scheduler_address.replace("127.0.0.1", host)
            with open_pool(RunOptions("cpu", scheduler=address), say=said.append):
                pass
    (line,) = [line for line in said if "asks for no password" in line]
    assert line.startswith("warning: the scheduler at tcp://0.0.0.0:")
    assert "run code as you; start it with TLS (see docs/machines.md)" in line
    quiet = ("tcp://localhost:1", "tcp://127.9.9.9:1", "tcp://[::1]:1", "tls://10.0.0.1:1", "inproc://10.0.0.1/1/1")
    assert [line for address in quiet for line in _open(address)] == []
    for address in ("tcp://10.0.0.1:8786", "tcp://[fe80::1]:8786", "ws://10.0.0.1:8786"):
        assert len(list(_open(address))) == 1

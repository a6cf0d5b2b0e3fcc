"""Writing the run folder: one writer, nothing torn, and what the operating system refuses."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import Outcome
from mclab.config.strict import ConfigError
from mclab.store import Records, Store, StoreError
from tests.store.test_folder import DONE, run_of

# ---- one writer ----

HOLDER = """
import sys
from mclab.store import Store
store = Store(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_second_process_is_told_who_holds_the_folder_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    holder = _holder(tmp_path)
    with holder:
        with pytest.raises(
            StoreError, match=rf"is in use by process {holder.pid} on .* since 20.*-c.*; wait"
        ) as caught:
            Store(tmp_path)
        assert isinstance(caught.value, ConfigError)
        assert "\n" not in str(caught.value)
        assert json.loads((tmp_path / "lock").read_text())["pid"] == holder.pid  # the attempt did not wipe it
        holder.kill()
    with Store(tmp_path) as store:
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
        with pytest.raises(StoreError, match=f"process {os.getpid()} "):
            Store(tmp_path)
        store.put(run_of(0), DONE)
    assert (tmp_path / "lock").read_text() == ""
    Store(tmp_path).close()


KILLED_IN_WRITING = """
import os, signal, sys
from mclab.config.run import RunConfig
from mclab.store import Store
from tests.stored import done
replace, count = os.replace, 0
def dying(source, target):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = dying
store = Store(sys.argv[1])
for seed in range(3):
    store.put(RunConfig(seed=seed), done(RunConfig(seed=seed), curve=({"step": 1},)))
"""


@pytest.mark.parametrize("at", [3, 4, 5])
def test_a_kill_in_the_middle_of_a_write_leaves_nothing_torn(tmp_path: Path, at: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_IN_WRITING, str(tmp_path), str(at)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob(".*.tmp"))) == 1
    with Store(tmp_path, say=pytest.fail) as store:
        assert not list(tmp_path.rglob(".*.tmp"))
        assert len(store.scan()) == (at - 1) // 2
        for record in store.scan():
            assert store.curve(record.run_id) == [{"step": 1}]


# ---- the operating system refuses ----


def _refuse(monkeypatch: pytest.MonkeyPatch, name: str, number: int, code: int) -> None:
    real, calls = getattr(os, name), 0

    def refusing(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise OSError(code, os.strerror(code))
        return real(*args)

    monkeypatch.setattr(os, name, refusing)


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_is_one_line_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), DONE)
        store.put(run_of(1), Outcome("failed"))
        before = (tmp_path / "records" / f"{run_id(run_of(1))}.json").read_bytes()
        _refuse(monkeypatch, name, number, errno.ENOSPC)
        with pytest.raises(StoreError, match=r"^\S+: the disk is full; results stored before are unharmed: .*$"):
            store.put(run_of(1), DONE)
        monkeypatch.undo()
        assert not list(tmp_path.rglob(".*.tmp"))
        found = (tmp_path / "records" / f"{run_id(run_of(1))}.json").read_bytes()
        assert found == before
        assert store.lookup(run_id(run_of(0)))
        store.put(run_of(1), DONE)
        assert [record.status for record in store.scan()] == ["done", "done"]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EIO, "cannot write: Input/output error"),
    ],
)
def test_other_refusals_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, line: str) -> None:
    with Store(tmp_path) as store:
        _refuse(monkeypatch, "replace", 1, code)
        with pytest.raises(StoreError, match=line) as caught:
            store.put(run_of(0), DONE)
    assert "\n" not in str(caught.value)


def test_a_place_that_cannot_be_a_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(StoreError, match="there is a file where a folder must be; give another folder with --out"):
            Store(path)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StoreError, match=r"^/proc/mclab: cannot make the folder"):
        Store("/proc/mclab")
    with pytest.raises(StoreError, match="is a file, not a run folder"):
        Records(tmp_path / "file")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/records").write_text("mine")
    with pytest.raises(StoreError, match="there is a file where a folder must be"):
        Store(tmp_path / "out")
    (tmp_path / "out/records").unlink()
    Store(tmp_path / "out").close()  # the failed attempt let go of the lock


def test_importing_the_store_loads_nothing_heavy() -> None:
    code = "import sys, mclab.store; print(sorted({'torch', 'dask', 'polars', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

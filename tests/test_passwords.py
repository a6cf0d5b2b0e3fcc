"""Passwords stay out of whatever is written or printed."""

import subprocess
import sys
from pathlib import Path

import pytest

from mclab.config.ids import run_id
from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.strict import ConfigError
from mclab.passwords import command_line, without_password, without_passwords
from mclab.store import Store, StoreError
from mclab.workers import Failure
from mclab.workers.work import work
from tests.store.test_folder import run_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:p@db/x", "postgresql://me@db/x"),
        ("--storage=postgres://me:p:q/r@db:1/x", "--storage=postgres://me@db:1/x"),
        ("postgresql://db/x?user=me&password=p&sslmode=require", "postgresql://db/x?user=me&sslmode=require"),
        ("postgresql://db/x?password=p", "postgresql://db/x"),
        ("postgresql://me@db:5432/x", "postgresql://me@db:5432/x"),
        ("runs/a:b@c?", "runs/a:b@c?"),
        ("no postgresql+psycopg://me:p%40q%2Fr@db/x, x@y", "no postgresql+psycopg://me@db/x, x@y"),
        ("postgresql://me:p@q@db/x", "postgresql://me@db/x"),
        ("postgresql://me:p'q\"r@db/x", "postgresql://me@db/x"),
        ("postgresql://:p@db/x", "postgresql://@db/x"),
        ("postgresql://db/x?pass%77ord=p&a=1", "postgresql://db/x?a=1"),
        ("postgresql%3A%2F%2Fme%3Asecret%40db%2Fx", "postgresql%3A%2F%2Fme%40db%2Fx"),
        ("https://me:token@host/x and tcp://127.0.0.1:8786", "https://me@host/x and tcp://127.0.0.1:8786"),
        ("PGPASSWORD=p mclab; sslpassword = 'a b'", "PGPASSWORD=*** mclab; sslpassword = ***"),
        ("{'a': 'b', 'password': 'c\\'d'}", "{'a': 'b', 'password': \"***\"}"),
        ('{"a": "b", "password": "c"}', '{"a": "b", "password": "***"}'),
        ("the password in PGPASSWORD or ~/.pgpass: mclab", "the password in PGPASSWORD or ~/.pgpass: mclab"),
        ("--storage: postgresql://u:***@db:1/x: refused", "--storage: postgresql://u:***@db:1/x: refused"),
        ("write postgresql://USER:PASSWORD@HOST/DATABASE", "write postgresql://USER:PASSWORD@HOST/DATABASE"),
    ],
)  # fmt: skip
def test_text_as_it_is_shown(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
    assert without_passwords(shown) == shown
    assert str(ConfigError(text)) == shown


def test_long_texts_take_no_time() -> None:
    for text in ("a" * 20_000, "a://" * 500, "a://b:" * 300, "password" * 250):
        without_passwords(text)


def test_a_word_of_a_command_is_an_address_as_a_whole() -> None:
    assert without_password("postgresql://me:one two@three four@db/x") == "postgresql://me@db/x"
    words = ["mclab", "sweep", "--storage", "postgresql://me:a b@db/x", "--storage=postgresql://me:a 'b@db/x"]
    assert command_line(words) == "mclab sweep --storage postgresql://me@db/x --storage=postgresql://me@db/x"


HOLDER = """
import sys
sys.argv = ["mclab", "sweep", "--storage", "postgresql://me:hidden@db/x"]
from mclab.store import Store
store = Store(sys.stdin.readline().strip())
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_and_who_reads_it_know_no_password_not_even_after_a_kill(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=-1, stdout=-1, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder:
        holder.stdin.write(f"{tmp_path}\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=r"\(mclab sweep --storage postgresql://me@db/x\)"):
            Store(tmp_path)
        holder.kill()
    assert "postgresql://me@db/x" in (tmp_path / "lock").read_text()
    assert "hidden" not in (tmp_path / "lock").read_text()


def test_a_lock_of_an_earlier_version_is_read_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path):
        told = '{"pid": 1, "host": "h", "since": "s", "command": "mclab --storage postgresql://me:hidden@db/x"}'
        (tmp_path / "lock").write_text(told)
        with pytest.raises(StoreError) as caught:
            Store(tmp_path)
        assert "postgresql://me@db/x" in str(caught.value)
        assert "hidden" not in str(caught.value)


def test_the_error_of_a_run_is_stored_without(tmp_path: Path) -> None:
    def train(*_: object, **__: object) -> list[Outcome]:
        raise OSError("cannot reach postgresql://me:hidden@db/x")

    failure = work((run_of(0),), RunOptions(device="cpu"), train)
    assert isinstance(failure, Failure)
    assert failure.error.startswith("OSError: cannot reach postgresql://me@db/x (")
    with Store(tmp_path) as store:
        store.put(run_of(0), Outcome("failed", error="at postgresql://me:hidden@db/x"))
        assert b"hidden" not in (tmp_path / "records" / f"{run_id(run_of(0))}.json").read_bytes()

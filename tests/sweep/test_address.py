"""A database's address: what is none, and that its password is never shown."""

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from mclab.sweep.postgres import Postgres
from tests.commands import mclab, one_line
from tests.sweep.bench import space_file


@pytest.mark.parametrize("address", ["postgresql://me:hidden@db:port/mclab", "mysql://me:hidden@db/mclab"])
def test_an_address_that_is_none_is_a_line_without_the_password(here: Path, address: str) -> None:
    done = mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address)
    one_line(done, "--storage: ", address.replace(":hidden", ""), "write postgresql://USER:PASSWORD@HOST/DATABASE")
    assert "hidden" not in done.err
    assert not (here / "o").exists()


def test_a_server_that_does_not_answer_leaves_no_folder(here: Path) -> None:
    address = "postgresql://me@127.0.0.1:1/mclab"  # nobody listens on port 1
    one_line(
        mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address), "127.0.0.1"
    )
    assert not (here / "o").exists()


def test_how_to_go_on_is_said_without_the_password(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mclab.sweep.command.sweep", stopped)
    address = "postgresql://me:hid/den@db:5432/mclab"
    done = mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address)
    assert done.code == 130
    assert "to continue, the password in PGPASSWORD or ~/.pgpass: mclab sweep " in done.err
    assert "--storage postgresql://me@db:5432/mclab" in done.err
    assert "hid" not in done.err


@pytest.mark.parametrize("address", ["host=db password=hidden", "postgresql://me:hid den@db:port/x"])
def test_other_forms_of_an_address_are_a_line_too(here: Path, address: str) -> None:
    done = mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address)
    one_line(done, "--storage: ", "write postgresql://USER:PASSWORD@HOST/DATABASE")
    assert "hid" not in done.err
    assert not (here / "o").exists()


def test_a_driver_that_quotes_a_password_by_itself_is_not_repeated() -> None:
    place = object.__new__(Postgres)
    place._url = sqlalchemy.engine.make_url("postgresql://me:hid%40den@db/x")
    assert place.reason(ValueError("invalid host 'hid@den',\n not 'hid%40den'")) == "invalid host '***', not '***'"


def test_a_traceback_is_shown_without_passwords() -> None:
    script = "import sys; sys.argv = ['mclab', 'keys']; import mclab.cli.app as app\n"
    script += "def fail(*_, **__): raise OSError('postgresql://me:hidden@db/x \\x1b[2J')\napp._run = fail\napp.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert done.stderr.splitlines()[-1] == r"OSError: postgresql://me@db/x \x1b[2J"

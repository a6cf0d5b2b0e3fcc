"""A database's address: what is none, and that its password is never shown."""

from pathlib import Path

import pytest
from mclab.sweep.address import without_password

from tests.commands import mclab, one_line
from tests.sweep.bench import space_file


@pytest.mark.parametrize("address", ["postgresql://me:hidden@db:port/mclab", "mysql://me:hidden@db/mclab"])
def test_an_address_that_is_none_is_a_line_without_the_password(here: Path, address: str) -> None:
    done = mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address)
    one_line(done, "--storage: ", address.replace(":hidden", ""), "write postgresql://USER:PASSWORD@HOST/DATABASE")
    assert "hidden" not in done.err


def test_how_to_go_on_is_said_without_the_password(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mclab.sweep.command.sweep", stopped)
    address = "postgresql://me:hid/den@db:5432/mclab"
    done = mclab("sweep", "--space", space_file(here), "--out", "o", "--trials", 1, "--storage", address)
    assert done.code == 130
    assert "to go on, the password in PGPASSWORD or ~/.pgpass: mclab sweep " in done.err
    assert "--storage postgresql://me@db:5432/mclab" in done.err
    assert "hid" not in done.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:p@db/x", "postgresql://me@db/x"),
        ("--storage=postgres://me:p:q/r@db:1/x", "--storage=postgres://me@db:1/x"),
        ("postgresql://db/x?user=me&password=p&sslmode=require", "postgresql://db/x?user=me&sslmode=require"),
        ("postgresql://db/x?password=p", "postgresql://db/x"),
        ("postgresql://me@db:5432/x", "postgresql://me@db:5432/x"),
        ("runs/a:b@c?", "runs/a:b@c?"),
    ],
)
def test_an_address_as_it_is_shown(text: str, shown: str) -> None:
    assert without_password(text) == shown

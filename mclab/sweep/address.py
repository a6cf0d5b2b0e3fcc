"""The address of a database as it may be shown: its password stays where it was given."""

import re

_PASSWORD = re.compile(r"(\w[\w+.-]*://[^:@/]*):[^@]*@")
_IN_QUERY = re.compile(r"(?<=[?&])password=[^&]*&?")


def without_password(text: str) -> str:
    """The text, its address without a password: PGPASSWORD and ~/.pgpass stand in for it."""
    shown = _PASSWORD.sub(r"\1@", text)
    return _IN_QUERY.sub("", shown).rstrip("?&") if "://" in shown else shown

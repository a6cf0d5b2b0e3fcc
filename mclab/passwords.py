"""This module removes passwords from text before it is written or printed.

A password may stand in an address (`postgresql://me:secret@host/db`, percent-encoded or not), in an address's query
(`?password=secret`), and in settings (`PGPASSWORD=secret`, `"password": "secret"`).
"""

import re
import shlex
from collections.abc import Sequence
from urllib.parse import unquote

#: Replaces the password of a setting. The password in an address is left out.
HIDDEN = "***"

_USER = r"(?<![\w+.-])\w[\w+.-]*://[^\s:@/?#]*"
#: The match goes up to the last @ of a word of the text, since people forget to percent-encode an @ in a password; it
#: goes past quotes only if no @ comes before them. The literal PASSWORD is kept: messages use it to explain how to
#: write an address. All lengths are bounded, so that a text with many beginnings of a match does not take minutes.
_ADDRESS = re.compile(rf"({_USER}):(?!PASSWORD@|\*{{3}}@)(?:[^\s\"']{{0,999}}|[^\s@]{{0,999}})@")
#: As `_ADDRESS`, for a single word of a command line, where the password may contain blanks.
_WORD = re.compile(rf"(?s)^((?:--?[\w-]+=)?{_USER}):.*@")
_ENCODED = re.compile(r"(?i)(\w%3A%2F%2F(?:(?!%3A|%40|%2F)\S){0,99})%3A\S{0,999}?%40")
_QUERY = re.compile(r"(://[^\s\"'?]{0,999})\?([^\s\"']+)")
_SECRET = r"\w*(?:password|passwd|passphrase|pwd)"
_NAME = re.compile(rf"(?i){_SECRET}")
_SETTING = re.compile(rf"(?i)\b({_SECRET}(?:\s?=\s?|%3D))(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&]+)")
_QUOTED = re.compile(rf"(?i)([\"']{_SECRET}[\"']\s*:\s*)(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")


def without_passwords(text: str) -> str:
    """Return `text` without passwords. (A database gets its password from PGPASSWORD or ~/.pgpass instead.)"""
    shown = _ENCODED.sub(r"\1%40", _QUERY.sub(_query, _ADDRESS.sub(r"\1@", text)))
    return _QUOTED.sub(rf'\1"{HIDDEN}"', _SETTING.sub(rf"\1{HIDDEN}", shown))


def _query(found: re.Match[str]) -> str:
    """Return the query of an address without its password parameters, whose names may be percent-encoded."""
    kept = [part for part in found[2].split("&") if not _NAME.fullmatch(unquote(part.partition("=")[0]))]
    return f"{found[1]}?{'&'.join(kept)}" if kept else found[1]


def without_password(word: str) -> str:
    """Return one word of a command line without passwords; the word may be an address as a whole."""
    return without_passwords(_WORD.sub(r"\1@", word))


def command_line(words: Sequence[str]) -> str:
    """Return a command as a shell reads it, without passwords."""
    return shlex.join(map(without_password, words))

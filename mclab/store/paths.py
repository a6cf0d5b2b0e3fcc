"""Paths that users give, looked at before anything runs."""

import os
from pathlib import Path

from mclab.config.strict import ConfigError

#: Bytes that a file system takes for a name, for a path, and what the name of a temporary file has beside its own.
MOST, MOST_IN_ALL, BESIDE = 255, 4095, len("..0123456789abcdef.tmp")


def usable(path: Path, what: str, beside: int = 0) -> Path:
    """The path. Raises `ConfigError` where no file system has room for it, its name longer by `beside` bytes."""
    for part in path.parts:
        most = MOST - (beside if part == path.name else 0)
        if (length := len(os.fsencode(part))) > most:
            raise ConfigError(f"{what}: {part[:24]}… has {length} bytes, a name has at most {most}; take a shorter one")
    if (length := len(os.fsencode(path))) > MOST_IN_ALL:
        raise ConfigError(f"{what}: the path has {length} bytes, at most {MOST_IN_ALL} are possible; take another")
    return path

"""Paths that users give, looked at before anything runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def told_as_given(given: Path, say: Callable[[str], None]) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """The absolute form of a folder, whatever becomes of the current one, and what says lines about it.

    Both those lines and a `ConfigError` from the body name the folder as its user gave it.
    """
    place = given.absolute()
    before, after = str(place), str(place) if len(place.parts) == 1 else str(given)

    def as_given(line: str) -> None:
        say(line.replace(before, after))

    try:
        yield place, as_given
    except ConfigError as error:
        error.renamed(before, after)
        raise

"""The one error for a user's input. It imports little: the command line knows it before the configs are loaded."""

from mclab.passwords import without_passwords
from mclab.printable import one_line


class ConfigError(ValueError):
    """A user's input is wrong. Each of `lines` says what, where, and the nearest right thing.

    It shows what it quotes: no end of a line, hidden character or password of the input's own comes through.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = tuple(one_line(without_passwords(line)) for line in lines)

    def renamed(self, before: str, after: str) -> None:
        """Write `after` in place of `before`, as where a file is told as its user gave it."""
        self.lines = tuple(line.replace(before, after) for line in self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def cut(text: str, most: int = 60) -> str:
    """A text in a message: what is beyond `most` letters is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."

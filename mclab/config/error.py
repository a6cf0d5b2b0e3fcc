"""The error for wrong user input, and guesses at what the user meant.

This module imports little, because the command line needs it before the configs are loaded.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from mclab.passwords import without_passwords
from mclab.printable import one_line


class ConfigError(ValueError):
    """A user's input is wrong. Each line of `lines` says what is wrong, where, and what is probably right.

    In every line, line ends and hidden characters are shown as escapes, and passwords are removed.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = tuple(one_line(without_passwords(line)) for line in lines)

    def renamed(self, before: str, after: str) -> None:
        """Replace `before` by `after` in all lines, e.g. to name a file as the user gave it."""
        self.lines = tuple(line.replace(before, after) for line in self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def cut(text: str, most: int = 60) -> str:
    """Shorten a text for a message to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


#: A word is suggested if this fraction of its letters also occurs, in the same order, in what the user wrote: `gaet`
#: and `gate` share 0.75. Weaker guesses mislead more often than they help; the message then lists all words.
CUTOFF = 0.6


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the entries of `known` that the user probably meant by `word`: at most `most`, the likeliest first.

    First come entries with the same letters in another order (`lgo` is `log`, not `low`), then similar words. If there
    are none, return the entries whose letters are the initials of the parts of `word` (`learning_rate` is `lr`).
    """
    words = list(known)
    swapped = [each for each in words if sorted(each) == sorted(word)]
    initials = "".join(part[:1] for part in word.split("_"))
    found = [*swapped, *get_close_matches(word, words, most, CUTOFF)] or [each for each in words if each == initials]
    return list(dict.fromkeys(found))[:most]


def suggestion(words: Sequence[str]) -> str:
    """Return `did you mean gate?` for the words `gate`; the empty text if `words` is empty."""
    return f"did you mean {' or '.join(words)}?" if words else ""


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """Return `before` followed by `did you mean gate?`; the empty text if no entry of `known` is similar to `word`."""
    near = suggestion(nearest(word, known))
    return f"{before}{near}" if near else ""

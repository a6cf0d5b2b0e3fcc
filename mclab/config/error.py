"""The one error for a user's input, and the guess at what was meant.

It imports little: the command line knows it before the configs are loaded.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from mclab.passwords import without_passwords
from mclab.printable import one_line


class ConfigError(ValueError):
    """A user's input is wrong. Each of `lines` says what, where, and the nearest right thing.

    Ends of lines, hidden characters and passwords in what it quotes are made visible or left out.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = tuple(one_line(without_passwords(line)) for line in lines)

    def renamed(self, before: str, after: str) -> None:
        """Write `after` in place of `before`, for example a file's name as the user gave it."""
        self.lines = tuple(line.replace(before, after) for line in self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def cut(text: str, most: int = 60) -> str:
    """A text in a message: what is beyond `most` letters is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


#: Share of letters that two words must have in common, in the same order: `gaet` and `gate` have 0.75. Below it a
#: guess misleads more often than it helps, and a message lists what there is instead.
CUTOFF = 0.6


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The entries of `known` that were probably meant by `word`, the likeliest first, `most` at most.

    The same letters in another order (`lgo` is `log`, not `low`), then words that are like it, else the initials of
    its parts (`learning_rate` is `lr`).
    """
    words = list(known)
    swapped = [each for each in words if sorted(each) == sorted(word)]
    initials = "".join(part[:1] for part in word.split("_"))
    found = [*swapped, *get_close_matches(word, words, most, CUTOFF)] or [each for each in words if each == initials]
    return list(dict.fromkeys(found))[:most]


def suggestion(words: Sequence[str]) -> str:
    """`did you mean gate?`, or nothing where there is no word."""
    return f"did you mean {' or '.join(words)}?" if words else ""


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """`did you mean gate?` behind `before`, or nothing where no known word is near."""
    near = suggestion(nearest(word, known))
    return f"{before}{near}" if near else ""

"""What was probably meant by a word that is not known: one rule for keys, values, names and ids alike."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

#: Share of letters that two words must have in common, in the same order: `gaet` and `gate` have 0.75. Below it a
#: guess misleads more often than it helps, and a message lists what there is instead.
CUTOFF = 0.6


def nearest(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Those of `known` that `word` probably stands for, the likeliest first, `most` at most.

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

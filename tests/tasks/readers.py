"""Readers that know what a sequence of each task means and nothing of how it was made.

`answer(prefix)` is the token that comes after a prefix, or None where nothing has been asked.
"""

KEY, IS, ASK, DIGITS = 0, 1, 2, range(3, 19)


def mqar(prefix: list[int]) -> int | None:
    """The token behind the first place at which the last token stood, if that is an earlier pair."""
    first = prefix.index(prefix[-1])
    even = first % 2 == 0 and len(prefix) % 2 == 1
    return prefix[first + 1] if even and prefix[-1] and first + 1 < len(prefix) else None


def ar(prefix: list[int]) -> int | None:
    """The value behind the last token in the pairs before the separator."""
    if len(prefix) < 2 or prefix[-2] != 0:
        return None
    return dict(zip(prefix[:-2:2], prefix[1:-2:2], strict=True))[prefix[-1]]


def niah(prefix: list[int]) -> int | None:
    """All values of the key behind the last ASK, one after another, less what has been fed of them."""
    if ASK not in prefix:
        return None
    values: dict[tuple[int, ...], list[int]] = {}
    for item in items(prefix[: prefix.index(ASK)]):
        if isinstance(item, tuple):
            values.setdefault(item[0], []).extend(item[1])
    turn = prefix[len(prefix) - prefix[::-1].index(ASK) :]
    width = len(next(iter(values)))
    if len(turn) < width:
        return None
    wanted, fed = values[tuple(turn[:width])], turn[width:]
    assert wanted[: len(fed)] == fed, "what is fed is the answer"
    return wanted[len(fed)] if len(fed) < len(wanted) else None


def items(haystack: list[int]) -> list[int | tuple[tuple[int, ...], tuple[int, ...]]]:
    """What stands in a haystack, in order: filler tokens, and needles as (key, value)."""
    found: list[int | tuple[tuple[int, ...], tuple[int, ...]]] = []
    at = 0
    while at < len(haystack):
        if haystack[at] != KEY:
            found.append(haystack[at])
            at += 1
            continue
        middle = haystack.index(IS, at)
        end = middle + 1
        while end < len(haystack) and haystack[end] in DIGITS:
            end += 1
        found.append((tuple(haystack[at + 1 : middle]), tuple(haystack[middle + 1 : end])))
        at = end
    return found


READERS = {"mqar": mqar, "ar": ar, "niah": niah}

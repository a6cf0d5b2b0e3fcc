"""Columns of text: padded to one width, set side by side, cut where they are too long."""

from collections.abc import Sequence

#: What stands where there is nothing to say.
NOTHING = "–"
GAP = "  "
#: Letters of an error's line among notes; `mclab show` has all of it.
_LONGEST_REASON = 160


def padded(texts: Sequence[str], right: bool = False, least: int = 0) -> list[str]:
    """The texts of a column, each as wide as the widest and at least `least`; flush right with `right`."""
    width = max([least, *map(len, texts)])
    return [text.rjust(width) if right else text.ljust(width) for text in texts]


def beside(columns: Sequence[Sequence[str]]) -> str:
    """Padded columns as lines, two spaces between them."""
    return "\n".join(GAP.join(line).rstrip() for line in zip(*columns, strict=True))


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows as lines, their columns padded; those at `right` flush right."""
    return beside([padded(column, place in right) for place, column in enumerate(zip(*rows, strict=True))])


def reason(error: str | None) -> str:
    """The last line of an error behind the status that it led to: ` (out of luck)`; empty where there is none."""
    lines = (error or "").strip().splitlines()
    return f" ({cut(lines[-1].rstrip('.'), _LONGEST_REASON)})" if lines else ""


def cut(text: str, longest: int) -> str:
    """The text in at most so many letters; the last is `…` where some are left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_middle(text: str, longest: int) -> str:
    """The text in at most so many letters, its middle left out where it is longer."""
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[head + 1 - longest :]}"

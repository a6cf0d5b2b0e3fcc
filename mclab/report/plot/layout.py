"""How large a figure is and what is written on it: the screen's layout by default, a printed column's by wish."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.strict import ConfigError
from mclab.report.text import listed

#: Inches of a column, and of a page of two columns, as most venues have them.
SINGLE, DOUBLE = 3.3, 7.0
#: Centimetres.
LEAST, MOST = 5, 60
_WIDTH, _TEXT, _FOOT = 8.4, 9.5, 8.0
#: A panel is no narrower, in inches.
_NARROWEST = 1.6


@dataclass(frozen=True)
class Names:
    """What texts of a figure are to be called instead; `seen` holds the texts that asked, so that a typo is told."""

    given: Mapping[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def __call__(self, text: str) -> str:
        """The name to show for a row, a key or a slice."""
        self.seen.add(text)
        return self.given.get(text, text)


@dataclass(frozen=True)
class Layout:
    """Width in inches, sizes of type in points. `heading` is on top: by default the question, nothing where it is
    empty."""

    width: float = _WIDTH
    text: float = _TEXT
    title: float = 11.5
    foot: float = _FOOT
    number: float = 7.5
    heading: str | None = None
    names: Names = field(default_factory=Names)

    @property
    def scale(self) -> float:
        """Inches of text beside the screen's."""
        return self.text / _TEXT

    def letters(self, screen: int, size: float = _TEXT, mine: float | None = None) -> int:
        """How many letters fit where the screen's layout has room for `screen` letters of `size` points."""
        return max(8, int(screen * self.width / _WIDTH * size / (mine or self.text)))

    def across(self, most: int) -> int:
        """Panels side by side, at most `most`."""
        return max(1, min(most, int(self.width / _NARROWEST)))

    @property
    def style(self) -> dict[str, Any]:
        """What it changes of the house's style."""
        return {"font.size": self.text, "axes.titlesize": self.text, "axes.labelsize": self.text}


def printed(inches: float) -> Layout:
    """A layout for print: text of 8 points at that width, the smallest 6.5."""
    return Layout(inches, text=8.0, title=9.0, foot=7.0, number=6.5)


def inches(width: str) -> float:
    """`single`, `double`, or a width in centimetres, in inches. Raises `ConfigError`."""
    words = {"single": SINGLE, "double": DOUBLE}
    if width in words:
        return words[width]
    try:
        found = float(width.lower().removesuffix("cm"))
    except ValueError:
        found = 0.0
    if not LEAST <= found <= MOST:
        raise ConfigError(f"--width: {width!r} is not single, double or {LEAST} to {MOST} centimetres, e.g. 8.4")
    return found / 2.54


def renamed(labels: Sequence[str], seen: Collection[str]) -> dict[str, str]:
    """What each `OLD=NEW` renames, OLD being a row, a key or a slice that is drawn; of several the longest, since names
    may hold `=` themselves. Raises `ConfigError` with the nearest name."""
    found: dict[str, str] = {}
    for text in labels:
        parts = text.split("=")
        splits = [("=".join(parts[:end]).strip(), "=".join(parts[end:])) for end in range(len(parts) - 1, 0, -1)]
        known = [(old, new.strip()) for old, new in splits if old in seen]
        if not known:
            wanted = splits[-1][0] if splits else text
            hint = did_you_mean(wanted, sorted(seen)) or f"drawn are {listed(sorted(filter(None, seen)))}"
            raise ConfigError(f"--labels: {text!r} is no OLD=NEW of a row, key or slice that is drawn; {hint}")
        found[known[0][0]] = known[0][1]
    return found


_CURRENT: ContextVar[Layout | None] = ContextVar("layout", default=None)


def layout() -> Layout:
    """The layout that figures are drawn in now."""
    return _CURRENT.get() or Layout()


@contextmanager
def using_layout(wanted: Layout | None) -> Iterator[None]:
    """Draw in this layout; `None` leaves it as it is."""
    token = _CURRENT.set(wanted or _CURRENT.get())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def named(text: str) -> str:
    """What a row, a key or a slice is called in the figure."""
    return layout().names(text)

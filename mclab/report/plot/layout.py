"""The layout of a figure: its width, font sizes and names. The default is for the screen; `printed` is for paper."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.strict import ConfigError
from mclab.report.text import listed

#: The widths of a column and of a page with two columns in inches, as most venues have them.
SINGLE, DOUBLE = 3.3, 7.0
#: The smallest and the largest width of a figure, in centimetres.
LEAST, MOST = 5, 60
_WIDTH, _TEXT, _FOOT = 8.4, 9.5, 8.0
#: The smallest width of a panel, in inches.
_NARROWEST = 1.6


@dataclass(frozen=True)
class Names:
    """New names for texts of a figure.

    `seen` collects the texts that can be renamed, so that a typo can be reported.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def __call__(self, text: str) -> str:
        """Return the name to show for a row, a key or a slice."""
        self.seen.add(text)
        return self.given.get(text, text)


@dataclass(frozen=True)
class Layout:
    """A layout: width in inches, font sizes in points. `heading` replaces the question on top; "" leaves it out."""

    width: float = _WIDTH
    text: float = _TEXT
    title: float = 11.5
    foot: float = _FOOT
    number: float = 7.5
    heading: str | None = None
    names: Names = field(default_factory=Names)

    @property
    def scale(self) -> float:
        """The font size divided by that of the layout for the screen."""
        return self.text / _TEXT

    def letters(self, screen: int, size: float = _TEXT, mine: float | None = None) -> int:
        """Return how many letters of `mine` points fit where the layout for the screen has `screen` letters of `size`
        points.

        `mine` is by default the font size of the text.
        """
        return max(8, int(screen * self.width / _WIDTH * size / (mine or self.text)))

    def across(self, most: int) -> int:
        """Return how many panels fit side by side, at most `most`."""
        return max(1, min(most, int(self.width / _NARROWEST)))

    @property
    def style(self) -> dict[str, Any]:
        """The matplotlib rcParams (font sizes) with which this layout overrides mclab's style."""
        return {"font.size": self.text, "axes.titlesize": self.text, "axes.labelsize": self.text}


def printed(inches: float) -> Layout:
    """Return a layout for print that is `inches` wide, with text of 8 points and smallest text of 6.5 points."""
    return Layout(inches, text=8.0, title=9.0, foot=7.0, number=6.5)


def inches(width: str) -> float:
    """Return in inches a width given as `single`, `double` or in centimetres. Raises `ConfigError` for other texts."""
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
    """Return {old name: new name} from the texts `OLD=NEW` in `labels`; each OLD must be in `seen`.

    Names may contain `=`: if a text can be split in several ways, the longest OLD in `seen` is taken. Raises
    `ConfigError`, with the nearest name, if no OLD is in `seen`.
    """
    found: dict[str, str] = {}
    for text in labels:
        parts = text.split("=")
        splits = [("=".join(parts[:end]).strip(), "=".join(parts[end:])) for end in range(len(parts) - 1, 0, -1)]
        known = [(old, new.strip()) for old, new in splits if old in seen]
        if not known:
            wanted = splits[-1][0] if splits else text
            hint = did_you_mean(wanted, sorted(seen)) or f"the figure has {listed(sorted(filter(None, seen)))}"
            raise ConfigError(
                f"--labels: {text!r} must be OLD=NEW, where OLD is a row, key or slice in the figure; {hint}"
            )
        found[known[0][0]] = known[0][1]
    return found


_CURRENT: ContextVar[Layout | None] = ContextVar("layout", default=None)


def layout() -> Layout:
    """Return the current layout, in which figures are drawn."""
    return _CURRENT.get() or Layout()


@contextmanager
def using_layout(wanted: Layout | None) -> Iterator[None]:
    """Make `wanted` the current layout inside the `with` block; `None` keeps the current one."""
    token = _CURRENT.set(wanted or _CURRENT.get())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def named(text: str) -> str:
    """Return the name that the figure shows for a row, a key or a slice."""
    return layout().names(text)

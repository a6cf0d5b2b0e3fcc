"""The blocks of a page as plain text, and the page as HTML.

The HTML is one file. It loads nothing else and runs only its own script. Every text is escaped by the template.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from mclab.passwords import without_passwords
from mclab.printable import printable
from mclab.report.plot.svg import Drawing
from mclab.report.table.columns import Shown

_TYPES = {".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex"}


@dataclass(frozen=True)
class Source:
    """What the page says about its origin: the run folder, the dates of its first and last record, and commands.

    `commands` made the folder and read it. `again` is the command that continues it, to which options can be added.
    """

    folder: Path
    dates: tuple[str, str] | None = None
    commands: tuple[str, ...] = ()
    again: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of text. The first `heads` columns name the rows; rows from number `body` on stay fixed at the foot."""

    caption: str
    columns: Sequence[Shown]
    heads: int = 1
    body: int | None = None
    under: str = ""
    kind: Literal["table"] = "table"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows that can be sorted and filtered."""
        return self._rows[: self.body]

    @property
    def foot(self) -> list[tuple[str, ...]]:
        """The rows at the foot, which are not sorted or filtered."""
        return [] if self.body is None else self._rows[self.body :]

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [tuple(map(printable, row)) for row in zip(*(column.texts for column in self.columns), strict=True)]


@dataclass(frozen=True)
class Plot:
    """A figure in two versions, for wide and for narrow screens; `alt` is its alternative text."""

    name: str
    alt: str
    wide: Drawing
    narrow: Drawing
    kind: Literal["plot"] = "plot"


@dataclass(frozen=True)
class Words:
    """A list of sentences; those that begin with an exclamation mark are shown as warnings."""

    lines: Sequence[str]
    kind: Literal["words"] = "words"


@dataclass(frozen=True)
class Code:
    """Commands or lines of a grid that a reader can copy; `head` says what they are for."""

    lines: Sequence[str]
    head: str = ""
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Facts:
    """A list of names and values. If `fold` is not empty, the page shows this text until the reader opens the list."""

    pairs: Sequence[tuple[str, str]]
    fold: str = ""
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Files:
    """Files by name, which are embedded in the page."""

    contents: dict[str, bytes]
    kind: Literal["files"] = "files"

    @property
    def links(self) -> list[tuple[str, str, str]]:
        """The name, the address (a `data:` URL) and the size of each file."""
        return [(name, _address(name, data), f"{len(data) / 1000:,.1f} kB") for name, data in self.contents.items()]


def _address(name: str, data: bytes) -> str:
    kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(data).decode()}"


Block = Table | Plot | Words | Code | Facts | Files


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it. The page's list of contents links to `id`."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A page: the question, its answer in sentences, a line on the source (`kicker`), and the sections."""

    title: str
    kicker: str
    answer: Sequence[str]
    every: Sequence[Section] = field(default=())

    @property
    def sections(self) -> list[Section]:
        """The sections that have at least one block."""
        return [section for section in self.every if section.blocks]


def html(page: Page) -> bytes:
    """Return the page as HTML. Texts are escaped, invisible characters are made visible, and passwords are left out."""
    script, style = (_file(name) for name in ("page.js", "page.css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    made = (
        _environment()
        .get_template("page.html")
        .render(page=page, script=Markup(script), style=Markup(style), digest=digest)
    )
    return made.encode("utf-8", "backslashreplace")


@cache
def _environment() -> Environment:
    made = Environment(loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters["shown"] = lambda text: printable(without_passwords(str(text)))
    made.filters["drawn"] = Markup
    return made


@cache
def _file(name: str) -> str:
    return (files("mclab.report.page") / name).read_text("utf-8")

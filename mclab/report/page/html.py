"""A page: what it is made of, plain text throughout, and as HTML: one file, which asks for nothing and runs nothing but
its own script. Every text is escaped where it is set."""

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
    """The run folder, when its records were first and last written, and the commands that repeat it and continue."""

    folder: Path
    dates: tuple[str, str] | None = None
    commands: tuple[str, ...] = ()
    again: str | None = None


@dataclass(frozen=True)
class Table:
    """Columns of text, the first `heads` of which name a row; rows from `body` on are at the foot, unsorted."""

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
        """The rows below them."""
        return [] if self.body is None else self._rows[self.body :]

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [tuple(map(printable, row)) for row in zip(*(column.texts for column in self.columns), strict=True)]


@dataclass(frozen=True)
class Plot:
    """A figure for wide screens and one for narrow ones; `alt` says what it shows."""

    name: str
    alt: str
    wide: Drawing
    narrow: Drawing
    kind: Literal["plot"] = "plot"


@dataclass(frozen=True)
class Words:
    """Sentences, as a list; those that begin with an exclamation mark are warnings."""

    lines: Sequence[str]
    kind: Literal["words"] = "words"


@dataclass(frozen=True)
class Code:
    """Commands, or lines of a grid, to be copied, and what they are for."""

    lines: Sequence[str]
    head: str = ""
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Facts:
    """Names and values; folded away where there is a `fold`, which is what is then shown."""

    pairs: Sequence[tuple[str, str]]
    fold: str = ""
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Files:
    """Files by name, inside the page."""

    contents: dict[str, bytes]
    kind: Literal["files"] = "files"

    @property
    def links(self) -> list[tuple[str, str, str]]:
        """Name, address and size of each."""
        return [(name, _address(name, data), f"{len(data) / 1000:,.1f} kB") for name, data in self.contents.items()]


def _address(name: str, data: bytes) -> str:
    kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(data).decode()}"


Block = Table | Plot | Words | Code | Facts | Files


@dataclass(frozen=True)
class Section:
    """A heading and what is below it. `id` is where the page's list of contents leads to."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """The question, its answer in sentences, and the sections that are not empty."""

    title: str
    kicker: str
    answer: Sequence[str]
    every: Sequence[Section] = field(default=())

    @property
    def sections(self) -> list[Section]:
        """Those that have something below their heading."""
        return [section for section in self.every if section.blocks]


def html(page: Page) -> bytes:
    """The page. Every text of it is escaped; hidden characters are written out, passwords left out."""
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

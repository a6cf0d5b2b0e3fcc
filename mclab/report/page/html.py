"""A page as HTML: one file, which asks for nothing and runs nothing but its own script."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from mclab.passwords import without_passwords
from mclab.printable import printable
from mclab.report.page.parts import Page


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

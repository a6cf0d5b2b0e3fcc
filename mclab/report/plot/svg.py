"""Make figures as SVG elements of a page, with real text, colours that the page sets, and hover texts for points."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mclab.printable import printable
from mclab.report.plot.kinds import drawn
from mclab.report.plot.layout import Layout, using_layout
from mclab.report.plot.style import COLOURS, GREY, hover_texts

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
#: Text stays text in the page's font, which is narrower than the font for which the layout was computed.
STYLE = {"svg.fonttype": "none"}
#: Layouts for figures of a page; they have no title, since the page shows it.
WIDE, NARROW = Layout(heading=""), Layout(width=3.6, text=8.5, foot=7.5, number=7.0, heading="")
#: The colours of a figure that are replaced by CSS variables of the page, whose dark mode has other colours.
_PAGE = {"#000000": "ink", GREY.lower(): "grey", "#e4e4e4": "rule", "#ffffff": "paper", "#d9d9d9": "rule"}
_PAGE |= {colour.lower(): f"c{place}" for place, colour in enumerate(COLOURS) if colour.lower() not in _PAGE}
_COLOUR = re.compile(r"(?<!\()#[0-9a-f]{6}\b")
_MARK = "said-"


@dataclass(frozen=True)
class Drawing:
    """An `svg` element, and its width in inches."""

    svg: str
    width: float


def drawing(figure: Callable[[], Figure], prefix: str, alt: str, layout: Layout = WIDE) -> Drawing:
    """Return the figure as an element of a page. `prefix` makes its ids different from those of other figures."""
    texts: dict[str, tuple[str, ...]] = {}

    def mark(made: Figure) -> None:
        made.patch.set_visible(False)
        numbers = count()
        for line in made.findobj(Line2D):
            if told := hover_texts(line):
                name = f"{_MARK}{next(numbers)}"
                texts[name] = told
                line.set_gid(name)

    with using_layout(layout):
        data = drawn(figure, "svg", STYLE, mark)
    return Drawing(_element(data, prefix, alt, texts), layout.width)


def _element(data: bytes, prefix: str, alt: str, texts: dict[str, tuple[str, ...]]) -> str:
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(data)
    for name in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}title"):
        for found in root.findall(name):
            root.remove(found)
    for group in root.iter(f"{{{_SVG}}}g"):
        if told := texts.get(group.get("id", "")):
            _say(group, told)
    _rename(root, prefix)
    for element in root.iter():
        for key in ("style", "fill", "stroke"):
            if (value := element.get(key)) is not None:
                element.set(key, _COLOUR.sub(_themed, value))
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    root.set("style", "fill: var(--ink, #000000)")  # elements without a fill would be black
    root.set("role", "img")
    root.set("aria-label", printable(alt))
    return ET.tostring(root, encoding="unicode")


def _say(group: ET.Element, told: tuple[str, ...]) -> None:
    """Add the hover texts `told` to the points of `group`, which are in the same order."""
    marks = list(group.iter(f"{{{_SVG}}}use"))
    if len(marks) == len(told):
        for use, text in zip(marks, told, strict=True):
            ET.SubElement(use, f"{{{_SVG}}}title").text = printable(text)


def _rename(root: ET.Element, prefix: str) -> None:
    """Prepend `prefix` to the ids that are referred to, and remove the other ids."""
    href = f"{{{_XLINK}}}href"
    used = {value[1:] for element in root.iter() if (value := element.get(href, "")).startswith("#")}
    for element in root.iter():
        for value in element.attrib.values():
            used |= set(re.findall(r"url\(#([^)]+)\)", value))
    for element in root.iter():
        name = element.attrib.pop("id", None)
        for key, value in list(element.attrib.items()):
            if key == href and value.startswith("#"):
                element.set(key, f"#{prefix}{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{prefix}"))
        if name in used:
            element.set("id", f"{prefix}{name}")


def _themed(found: re.Match[str]) -> str:
    name = _PAGE.get(found[0])
    return f"var(--{name}, {found[0]})" if name else found[0]

"""Draw the figures of a grid by kind, and write their files. It is the only module that a caller of plots needs."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from mclab.config.strict import ConfigError
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup
from mclab.printable import printable
from mclab.report.plot.curves import curves_figure
from mclab.report.plot.effects import effects_figure
from mclab.report.plot.heat import heat_figure, heat_map
from mclab.report.plot.layout import Layout, Names, layout, renamed, using_layout
from mclab.report.plot.lines import lines_figure, numeric_axis
from mclab.report.plot.points import points_figure
from mclab.report.plot.slices import capacity_figure, slices_figure
from mclab.report.plot.state import state_figure
from mclab.report.plot.style import STYLE
from mclab.report.table.effects import effects
from mclab.report.table.export import write_files
from mclab.report.table.summary import Summary, summarise

#: For each format, metadata without the time of writing, so that the same figure gives the same bytes.
METADATA: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
#: The kinds of figure, which are also the names of their files.
KINDS = ("accuracy", "points", "curves", "slices", "heat", "capacity", "state", "effects")


def write_plots(
    plan: Plan,
    lookup: Lookup,
    folder: Path,
    formats: Sequence[str] = ("png", "svg"),
    kinds: Sequence[str] = (),
    curve: Curve | None = None,
    wanted: Layout | None = None,
    labels: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Write `<kind>.<format>` into `folder` for each kind and format (png, svg, pdf); return the paths.

    Without `kinds`, those of `fitting` are drawn. `curve` finds the evaluations of a run by its id, for the kind
    `curves`. `wanted` is the layout, by default the current one. `labels` rename rows, keys and slices (`OLD=NEW`).
    If some of `kinds` have nothing to draw, `say` gets a line with the reasons. Needs no display. Raises `ValueError`
    for an unknown format or kind, and `ConfigError` if no kind has anything to draw and for a label whose OLD is not in
    a figure.
    """
    for what, given, known in (("format", formats, tuple(METADATA)), ("kind", kinds, KINDS)):
        unknown = [word for word in given if word not in known]
        if unknown:
            raise ValueError(f"{what}: {unknown[0]} is not one of {', '.join(known)}")
    summary = summarise(plan, lookup, curve)
    figures: Mapping[str, Callable[[], Figure]] = {
        kind: partial(figure_of, summary, kind, curve) for kind in kinds or fitting(summary)
    }
    figures = _drawable(figures, say) if len(kinds) > 1 else figures
    with using_layout(with_labels(wanted or layout(), labels, figures.values())):
        files = {f"{kind}.{form}": drawn(figure, form) for kind, figure in figures.items() for form in formats}
    return write_files(folder, files)


def _drawable(
    figures: Mapping[str, Callable[[], Figure]], say: Callable[[str], None]
) -> dict[str, Callable[[], Figure]]:
    """Return the figures that can be drawn; `say` gets one line that says why the others cannot.

    Raises `ConfigError`, with a line for each figure, if none can be drawn.
    """
    found, reasons = dict[str, Callable[[], Figure]](), list[str]()
    for kind, figure in figures.items():
        try:
            figure()
            found[kind] = figure
        except ConfigError as error:
            reasons.append(str(error))
    if not found:
        raise ConfigError(*reasons)
    if reasons:
        say(f"not drawn: {'; '.join(reasons)}")
    return found


def with_labels(wanted: Layout, labels: Sequence[str], figures: Iterable[Callable[[], Figure]]) -> Layout:
    """Return the layout `wanted` with the new names that `labels` give.

    The figures are drawn once before this, to find out which names occur in them.
    """
    if not labels:
        return wanted
    first = replace(wanted, names=Names())
    with using_layout(first):
        for figure in figures:
            figure()
    return replace(wanted, names=Names(renamed(labels, first.names.seen)))


def refuse_empty(plan: Plan, lookup: Lookup) -> None:
    """Raise `ConfigError` where no run has a result yet, so that every figure would be empty."""
    if not any(row.accuracy.n for row in summarise(plan, lookup).rows):
        raise ConfigError(f"{plan.name}: no run has a result yet, so there is nothing to draw")


def fitting(summary: Summary) -> list[str]:
    """Return the kinds that are drawn by default.

    They are `accuracy`, `heat` if the slices are a grid of a number (e.g. depth) by length, and `effects` if there are
    any.
    """
    return ["accuracy", *["heat"] * (heat_map(summary) is not None), *["effects"] * bool(effects(summary))]


def render(summary: Summary, form: str, kind: str = "accuracy", curve: Curve | None = None) -> bytes:
    """Return a figure as the content of a file. It depends only on the summary, not on the user's matplotlibrc."""
    return drawn(lambda: figure_of(summary, kind, curve), form)


def drawn(
    figure: Callable[[], Figure],
    form: str,
    style: Mapping[str, Any] | None = None,
    before: Callable[[Figure], None] = lambda made: None,
) -> bytes:
    """Call `figure`, in mclab's style and the current layout, and return the result as the content of a file.

    `style` holds further settings of matplotlib; `before` is called with the figure before it is saved.
    """
    buffer = BytesIO()
    house: dict[str, Any] = {**STYLE, **layout().style, **(style or {})}
    with matplotlib.style.context(["default", house]), warnings.catch_warnings():
        # Such a character is drawn as a box; the user cannot change that.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        made = figure()
        _show_hidden(made)
        before(made)
        made.savefig(buffer, format=form, metadata=METADATA[form])
    return buffer.getvalue()


def _show_hidden(figure: Figure) -> None:
    """Make invisible characters visible in every text and tick label of the figure."""
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_text(printable(text.get_text()))
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_locator(), FixedLocator):
            texts = [label.get_text() for label in axis.get_ticklabels()]
            if any(printable(text) != text for text in texts):
                axis.set_ticks(axis.get_ticklocs(), list(map(printable, texts)))


def figure_of(summary: Summary, kind: str, curve: Curve | None = None) -> Figure:
    """Draw the figure of a kind. Raises `ConfigError` where there is nothing to draw."""
    if kind == "curves":
        return curves_figure(summary, curve or (lambda run: []))
    figures = {
        "accuracy": accuracy_figure,
        "points": points_figure,
        "slices": slices_figure,
        "heat": heat_figure,
        "capacity": capacity_figure,
        "state": state_figure,
        "effects": effects_figure,
    }
    return figures[kind](summary)


def accuracy_figure(summary: Summary) -> Figure:
    """Draw lines along a numeric key if the grid has one, else a row of points for each cell."""
    axis = numeric_axis(summary)
    return points_figure(summary) if axis is None else lines_figure(summary, axis)

"""One figure for a grid: accuracy per cell, every seed a point. The only module that a caller of plots needs."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure

from mclab.plan.plan import Plan
from mclab.plan.select import Lookup
from mclab.report.axis import numeric_axis
from mclab.report.lines import lines_figure
from mclab.report.marks import STYLE
from mclab.report.points import points_figure
from mclab.report.summary import Summary, summarise
from mclab.report.write import write_files

#: Per format, the metadata that would hold the time of writing, switched off.
METADATA: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write_plots(plan: Plan, lookup: Lookup, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `accuracy.<format>` into `folder` for each format (png, svg, pdf); return the paths. Needs no display.

    Raises `ValueError` for another format.
    """
    unknown = [form for form in formats if form not in METADATA]
    if unknown:
        raise ValueError(f"format: {unknown[0]} is not one of {', '.join(METADATA)}")
    summary = summarise(plan, lookup)
    return write_files(folder, {f"accuracy.{form}": render(summary, form) for form in formats})


def render(summary: Summary, form: str) -> bytes:
    """The figure as a file's content; the same summary gives the same bytes, whatever matplotlibrc the user has."""
    buffer = BytesIO()
    with matplotlib.style.context(["default", STYLE]):
        accuracy_figure(summary).savefig(buffer, format=form, metadata=METADATA[form])
    return buffer.getvalue()


def accuracy_figure(summary: Summary) -> Figure:
    """Lines along a numeric key where the grid has one, else one row of points per cell."""
    axis = numeric_axis(summary)
    return points_figure(summary) if axis is None else lines_figure(summary, axis)

"""The table of cells as a markdown page: question, table, slices, verdict, notes."""

import re
from collections.abc import Sequence

from mclab.printable import printable
from mclab.report.align import padded
from mclab.report.prose.notes import notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.columns import Shown, shown_columns, slice_columns
from mclab.report.table.effects import effects
from mclab.report.table.effects_shown import effect_columns, reading, told
from mclab.report.table.summary import Summary

#: What would end a cell, start emphasis, code or a formula, or open a tag. Inside a word `_` starts nothing.
SPECIAL = re.compile(r"[\\|*`$~]|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def escape(text: str) -> str:
    """Text that markdown shows as it is, on one line."""
    return " ".join(SPECIAL.sub(lambda found: "\\" + found[0], printable(text)).split())


def markdown(summary: Summary) -> str:
    """The whole page."""
    parts = [f"# {escape(summary.plan.question or summary.plan.name)}", grid(shown_columns(summary))]
    words = verdict(summary)
    if words:
        parts.append("\n".join(f"- {escape(line)}" for line in words))
    slices = slice_columns(summary)
    if slices:
        parts += ["Test accuracy by slice:", grid(slices)]
    parts += _effects(summary)
    parts += ["Notes:", "\n".join(f"- {escape(line)}" for line in notes(summary))]
    return "\n\n".join(parts) + "\n"


def effects_page(summary: Summary) -> str:
    """The effects of a whole grid as a page of their own."""
    return "\n\n".join([f"# {escape(summary.plan.question or summary.plan.name)}", *_effects(summary)]) + "\n"


def _effects(summary: Summary) -> list[str]:
    """Title, table, sentences; nothing for what is no grid of two axes."""
    if not (found := effects(summary)):
        return []
    lines = [*told(found), *reading(summary)]
    words = "\n".join(f"- {escape(line[0].upper() + line[1:])}" for line in lines)
    return ["Effects of the axes:", grid(effect_columns(found)), words]


def grid(columns: Sequence[Shown]) -> str:
    """A pipe table, padded so that it can be read as text too."""
    made = []
    for column in columns:
        texts = [escape(text) for text in (column.head, *column.texts)]
        head, *body = padded(texts, column.right, least=3)
        rule = "-" * (len(head) - 1) + ":" if column.right else "-" * len(head)
        made.append([head, rule, *body])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*made, strict=True))

"""Show the published table and our results as text: a table in the paper's form, then the differences of both."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mclab.plan.paper import COSTS, RISING, Column, Metric, Word
from mclab.printable import printable
from mclab.report.paper.comparison import DIVERGED, Entry, Held, Reproduction, Verdict
from mclab.report.prose.notes import alarms
from mclab.report.stats import ALPHA, LEAST_PAIRS, Difference
from mclab.report.table.accuracy import AT_CHANCE, EDGE, FEW_STARTED, IMPROVING, SOLVED
from mclab.report.table.columns import Shown
from mclab.report.table.grids import fit, text_grid, wrapped
from mclab.report.text import NOTHING, listed, p_text, seeds_text

#: The units in which our figures are shown; accuracies and other shares are in percent.
UNITS: dict[Metric, str] = {
    **dict.fromkeys(("accuracy", "value_accuracy", "values_found", "token_accuracy"), "%"),
    "loss": "nats",
    "bits": "bits",
    "tokens_per_s": "tokens/s",
    "mmacs": "million multiply-adds a token",
}
#: The meaning of each verdict. Verdicts are counted in this order.
WORDS: dict[Verdict, str] = {
    "agrees": "told apart, as published",
    "contradicts": "told apart, the other way",
    "even": "the interval is within the margin",
    "open": "not told apart; about so many seeds would tell, so many to be safe",
    "better": "told apart, nothing published",
    "worse": "told apart, nothing published",
}
#: For each mark, its meaning and what to do about it.
MENDED = {
    AT_CHANCE: "not above a predictor that does not recall; more steps or another learning rate, then more seeds",
    FEW_STARTED: "most runs have not begun to learn; more steps or another learning rate, then more seeds",
    IMPROVING: "accuracy still rose when training ended; more steps",
    EDGE: "the best learning rate is an end of its range; a wider range",
    DIVERGED: "every run diverged; a lower learning rate",
}


def tables(found: Reproduction) -> list[tuple[str, list[Shown]]]:
    """Return titles and tables: first our figures and the paper's with a row for each variant, then the differences.

    There is a table of differences for each column. If the grid has only one column, and each row is compared with at
    most one other row, figures and differences are in one table.
    """
    rows = [each.row for each in found.held]
    if len(found.columns) == 1 and rows and len(set(rows)) == len(rows):
        (column,) = found.columns
        held = {each.row: each for each in found.held}
        beside = _pieces(column, [held.get(row.name) for row in found.rows])
        return [("", [*_heads(found), *_figures(found, column), *beside])]
    shape = [*_heads(found), *(shown for column in found.columns for shown in _figures(found, column))]
    lists = [(f"{column.name}: differences", _differences(found, column)) for column in found.columns]
    return [("", shape), *((title, columns) for title, columns in lists if columns)]


def _heads(found: Reproduction) -> list[Shown]:
    return [Shown("row", tuple(row.name for row in found.rows), right=False)]


def _figures(found: Reproduction, column: Column) -> Iterator[Shown]:
    entries = [found.entries[row.name, column.name] for row in found.rows]
    yield Shown(f"{column.name}, {UNITS[column.metric]}", tuple(_ours(entry, column.metric) for entry in entries))
    head = "paper" if column.unit == UNITS[column.metric] else f"paper, {column.unit}"
    yield Shown(head, tuple(_published(entry.paper) for entry in entries))


def _differences(found: Reproduction, column: Column) -> list[Shown]:
    held = [each for each in found.held if each.column == column]
    if not held:
        return []
    return [Shown("row", tuple(each.row for each in held), right=False), *_pieces(column, held)]


def _pieces(column: Column, held: Sequence[Held | None]) -> Iterator[Shown]:
    """Yield the columns that describe comparisons: our difference, the paper's, p, verdict; `–` for rows without."""

    def shown(head: str, text: Callable[[Held], str], right: bool = True, expendable: int = 0) -> Shown:
        return Shown(head, tuple(text(each) if each else NOTHING for each in held), right, expendable)

    yield shown("against", lambda each: each.against, right=False)
    yield shown("difference", lambda each: _gap(each.gap, column.metric))
    yield shown("paper's", _paper_gap)
    yield shown("p", lambda each: p_text(each.p), expendable=1)
    yield shown("verdict", verdict_text, right=False)


def number(value: float, metric: Metric, sign: str = "") -> str:
    """Return one of our figures as text, in the unit that `UNITS` gives."""
    if metric in RISING and metric not in COSTS:
        return f"{round(100 * value, 1) + 0.0:{sign}.1f}"
    return f"{round(value) + 0.0:{sign},.0f}" if metric == "tokens_per_s" else f"{round(value, 3) + 0.0:{sign}.3f}"


def _ours(entry: Entry, metric: Metric) -> str:
    """Return our result, e.g. `41.2 ± 3.1 (at chance)`.

    It has the mean, half the width of its interval and, in brackets, the entry's mark if there is one.
    """
    mark = f" ({entry.mark})" if entry.mark else ""
    spread = entry.spread
    if spread.mean is None:
        return NOTHING + mark
    counted = spread.hi is None or metric == "mmacs"
    half = "" if counted else f" ± {number((spread.hi or 0.0) - spread.mean, metric)}"
    return number(spread.mean, metric) + half + mark


def _published(figure: float | Word | None) -> str:
    return NOTHING if figure is None else figure if isinstance(figure, str) else f"{figure:,.10g}"


def _gap(gap: Difference, metric: Metric) -> str:
    """Return our difference with its interval, e.g. `+8.1 [+2.0, +14.2]`. The interval is not clipped."""
    if gap.mean is None:
        return NOTHING
    mean = number(gap.mean, metric, "+")
    if gap.lo is None or gap.hi is None:
        return mean
    return f"{mean} [{number(gap.lo, metric, '+')}, {number(gap.hi, metric, '+')}]"


def _paper_gap(held: Held) -> str:
    if held.paper is not None:
        return f"{round(held.paper, 6) + 0.0:+,.6g}"
    return NOTHING if held.side is None else {1: "better", 0: "even", -1: "worse"}[held.side]


def verdict_text(held: Held) -> str:
    """Return, e.g., `agrees`, `open (about 14 seeds, 52 to be safe)`, `worse (not published)`, `none (at chance)`."""
    high = ["ceiling"] * (held.ceiling and held.verdict in ("even", "open", "agrees"))
    if held.verdict == "open":
        return _bracketed("open", [_seeds_that_tell(held), *high])
    if held.verdict in ("better", "worse"):
        return _bracketed(held.verdict, ["not published"])
    return _bracketed(held.verdict, [*([held.reason] if held.reason else []), *high])


def _bracketed(word: str, more: Sequence[str]) -> str:
    return f"{word} ({', '.join(more)})" if any(more) else word


def _seeds_that_tell(held: Held) -> str:
    about, safe = held.seeds or (None, None)
    if about is None:
        return "no number of seeds would tell them apart"
    return f"about {about:,} seeds, {f'{safe:,}' if safe is not None else 'no number'} to be safe"


def verdicts(found: Reproduction) -> list[str]:
    """Return sentences on how many comparisons agree with the paper, and on why some have no verdict."""
    judged = [each for each in found.held if each.verdict != "none"]
    counts = Counter(each.verdict for each in judged)
    lines = []
    if found.held:
        told = ", ".join(f"{word} {counts[word]}" for word in WORDS if counts[word])
        lines.append(f"{len(found.held)} comparisons: {told or 'no verdict'}{_without(found)}.")
    lines += [
        f"Contradicts: {each.row} against {each.against} ({each.column.name})."
        for each in judged
        if each.verdict == "contradicts"
    ]
    lines += _mending(found)
    most = max((len(entry.scores) for entry in found.entries.values()), default=0)
    if found.held and most < LEAST_PAIRS:
        lines.append(f"No test was made: {most} seed{'s' * (most != 1)}, and a test takes {LEAST_PAIRS}.")
    return lines


def _mending(found: Reproduction) -> Iterator[str]:
    """Yield a sentence for each mark that occurs: what it means and what to do about it."""
    marks = [entry.mark for entry in found.entries.values() if entry.mark]
    for mark, way in MENDED.items():
        if any(mark in each for each in marks):
            yield f"({mark}): {way}; until then there is no verdict."


def _without(found: Reproduction) -> str:
    none = sum(each.verdict == "none" for each in found.held)
    return f"; {none} without a verdict" * bool(none)


def how_to_read_paper(found: Reproduction) -> list[str]:
    """Return sentences on how to read the tables."""
    plan = found.summary.plan
    lines = [
        f"Paper: {found.paper.source}. Seeds {seeds_text(plan.seeds)}. Ours: mean ± half of its 95 % t interval over "
        f"seeds, of one number a seed: the mean over the column's tasks; a diverged run counts as 0."
    ]
    if found.held:
        lines += _judging(found)
    if plan.until:
        lines.append("Seeds were added until rows were told apart: p here takes no account of that.")
    if found.absent:
        lines.append(f"Not in this form of the grid: {listed(found.absent)}.")
    return lines


def _judging(found: Reproduction) -> Iterator[str]:
    seen = {each.verdict for each in found.held}
    words = "; ".join(f"{word}: {meaning}" for word, meaning in WORDS.items() if word in seen)
    yield (
        "Difference: row minus the row that it is compared with, paired by seed, with its 95 % t "
        "interval (not adjusted); "
        f"paper's: the same of the published figures. p: paired t test, Holm over a column's rows, below {ALPHA} "
        f"told apart. {words}{'.' * bool(words)}".strip()
    )
    judged = [column for column in found.columns if column.margin and column.metric not in COSTS]
    if judged:
        margins = [f"{c.name} {number(c.margin or 0.0, c.metric)} {UNITS[c.metric]}" for c in judged]
        yield f"Margin of even: {', '.join(margins)}."
    if "open" in seen:
        yield "Seeds that would tell are those of a new run: p is not corrected for seeds that are added to this one."
    if any(each.ceiling for each in found.held):
        yield f"(ceiling): both rows reach {SOLVED:.0%} on average, so a gap says little."


def terminal_text(found: Reproduction, width: int) -> str:
    """Return question, tables, how to read them, verdicts and alarms, no wider than `width` where possible."""
    plan = found.summary.plan
    parts = [wrapped(plan.question or plan.name, width)]
    for title, columns in tables(found):
        parts.append(f"{printable(title)}\n" * bool(title) + text_grid(fit(columns, width)))
    parts.append("\n".join(wrapped(line, width) for line in how_to_read_paper(found)))
    words = [*verdicts(found), *(f"! {line}" for line in alarms(found.summary))]
    return "\n\n".join([*parts, *["\n".join(wrapped(line, width) for line in words)] * bool(words)]) + "\n"

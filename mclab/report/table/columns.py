"""Make the columns of the table of rows as text. Markdown and the terminal show the same columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mclab.config.outcome import ALL
from mclab.report.sequential import seeds_to_tell
from mclab.report.stats import Spread
from mclab.report.table.accuracy import EDGE, WithoutRecall
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import (
    NOTHING,
    count,
    interval,
    listed,
    mean_std,
    p_text,
    seconds,
    signed,
    signed_interval,
    value_text,
)

#: A number of seeds above this is written as "more than 1,000".
PLENTY = 1000
TOLD = {"better": "told better", "worse": "told worse"}
#: The name of the column with the baseline without recall, and of its line in the table of slices.
WITHOUT_RECALL = "without recall"
#: The name of the column with the marks of a row.
MARKS = "first mend"


@dataclass(frozen=True)
class Shown:
    """A column: its head, a text for each row, whether it is aligned right, and how easily it may be hidden.

    A column with `expendable` 0 is always shown. If the width is too small, the columns with the largest `expendable`
    are hidden first.
    """

    head: str
    texts: tuple[str, ...]
    right: bool = True
    expendable: int = 0


def shown_columns(summary: Summary) -> list[Shown]:
    """Return the columns of the main table."""
    return [*row_heads(summary), *_results(summary), *_picked(summary), *_costs(summary)]


def slice_columns(summary: Summary) -> list[Shown]:
    """Return columns with mean ± standard deviation on every slice, the task's own slices first.

    The result is empty if no cell has more than one slice. Below the rows, each column has the baselines without
    recall, one for each different test.
    """
    if not summary.has_slices:
        return []
    whole = _column(summary, "mean of own" if summary.extras else "all", lambda row: mean_std(row.accuracy))
    columns = [*row_heads(summary), whole, *(_slice(summary, part) for part in summary.slices)]
    below = [_baseline_texts(summary, label, found) for label, found in baselines(summary).items()]
    return [replace(column, texts=(*column.texts, *more)) for column, *more in zip(columns, *below, strict=True)]


def baselines(summary: Summary) -> dict[str, WithoutRecall]:
    """Return the different baselines without recall of a table, each by a label of the rows that have it.

    The label is empty if all rows have the same baseline; otherwise it names what the rows with this baseline share.
    """
    groups: dict[str, list[Row]] = {}
    for row in summary.baselined:
        groups.setdefault(repr(row.without_recall and row.without_recall.best), []).append(row)
    alone = len(groups) == 1
    named = [("" if alone else _alike(summary, rows), rows[0].without_recall) for rows in groups.values()]
    return {label: found for label, found in named if found}


def _alike(summary: Summary, rows: Sequence[Row]) -> str:
    """Return the values that all of `rows`, but not all rows of the table, have; without one, the names of `rows`."""
    shared = [
        value_text(rows[0].values[path])
        for path in summary.plan.axes
        if len(_texts(rows, path)) == 1 < len(_texts(summary.rows, path)) and path in rows[0].values
    ]
    return ", ".join(shared) or listed([row.label for row in rows])


def _texts(rows: Sequence[Row], path: str) -> set[str | None]:
    return {value_text(row.values[path]) if path in row.values else None for row in rows}


def _baseline_texts(summary: Summary, label: str, found: WithoutRecall) -> list[str]:
    """Return a baseline's line in the table of slices: its name in the first columns, then its accuracies."""
    heads = len(list(row_heads(summary)))
    known = [found.accuracy(part) for part in (ALL, *summary.slices)]
    whole = WITHOUT_RECALL + f" ({label})" * bool(label)
    names = [label, WITHOUT_RECALL] if label and heads > 1 else [whole]
    return [*names, *[""] * (heads - len(names)), *(NOTHING if each is None else f"{each:.3f}" for each in known)]


def _slice(summary: Summary, part: str) -> Shown:
    return _column(summary, part, lambda row: mean_std(row.slices.get(part, Spread())))


def row_heads(summary: Summary) -> Iterator[Shown]:
    """Yield the columns that identify a row: one for each axis, or the row's name in a grid of changes."""
    if summary.plan.named or not summary.plan.axes:
        yield _column(summary, "cell", lambda row: row.label, right=False)
        return
    for path in summary.plan.axes:
        texts = [value_text(row.values[path]) if path in row.values else NOTHING for row in summary.rows]
        yield Shown(summary.names[path], tuple(texts), right=False)


def _results(summary: Summary) -> Iterator[Shown]:
    yield _column(summary, "test accuracy", accuracy_text)
    for metric in summary.metrics:
        yield _column(summary, metric.replace("_", " "), partial(_further, metric), expendable=1)
    yield _column(summary, "95 % interval", lambda row: interval(row.accuracy), expendable=2)
    if len(summary.rows) > 1:
        yield _column(summary, "difference", difference_text)
        yield from _judged(summary) if summary.looks else [_column(summary, "p", lambda row: p_text(row.p))]
    if any(_guards(row) for row in summary.rows):
        yield _column(summary, MARKS, lambda row: ", ".join(_guards(row)) or NOTHING, right=False)
    if summary.baselined:
        marked = any(row.guessing for row in summary.rows)
        yield _column(summary, WITHOUT_RECALL, _without_recall, expendable=0 if marked else 1)
    yield _column(summary, "solved", lambda row: f"{row.solved}/{row.accuracy.n}")
    if any(row.status != f"{row.wanted} done" for row in summary.rows):
        yield _column(summary, "status", lambda row: row.status, right=False, expendable=6)


def _judged(summary: Summary) -> Iterator[Shown]:
    """Yield the columns of a sequential grid: corrected p and the look's share of the error, look, verdict."""
    yield _column(summary, "p", against_share)
    yield _column(summary, "look", lambda row: look_text(row, summary))
    yield _column(summary, "verdict", lambda row: look_verdict(row, summary), right=False)


def _guards(row: Row) -> list[str]:
    """Return the row's marks except `EDGE`, which is shown next to the chosen value."""
    return [mark for mark in row.marks if mark != EDGE]


def accuracy_text(row: Row) -> str:
    """Return e.g. `0.912 ± 0.034 (5, 2 did not learn)`: mean, standard deviation, number of seeds, failures."""
    text = mean_std(row.accuracy)
    return f"{text[:-1]}, {row.not_learned} did not learn)" if row.not_learned else text


def _further(metric: str, row: Row) -> str:
    return mean_std(row.spread_of(metric))


def _without_recall(row: Row) -> str:
    """Return the accuracy of the best predictor without recall, e.g. `0.147`.

    `(not above)` is appended if the row's accuracy is not significantly higher.
    """
    found = row.without_recall
    return NOTHING if found is None else f"{found.accuracy():.3f}" + " (not above)" * (not found.above)


def _picked(summary: Summary) -> Iterator[Shown]:
    for path in summary.selected:
        texts = [_with_edge(row, path) for row in summary.rows]
        yield Shown(summary.names[path], tuple(texts), expendable=3)


def _with_edge(row: Row, path: str) -> str:
    if path not in row.picked:
        return NOTHING
    return value_text(row.picked[path]) + " (edge)" * (path in row.edges)


def _costs(summary: Summary) -> Iterator[Shown]:
    yield _column(summary, "params", lambda row: count(row.params), expendable=5)
    yield _column(summary, "state", _state, expendable=4)
    if any(row.starts is not None for row in summary.rows):
        yield _column(summary, "starts", lambda row: count(row.starts), expendable=6)
    yield _column(summary, "steps to 99 %", lambda row: count(row.steps_to_99()), expendable=8)
    yield _column(summary, "tokens/s", lambda row: count(row.tokens_per_s), expendable=9)
    yield _column(summary, "s/run", lambda row: seconds(row.wall_s), expendable=7)


def _column(summary: Summary, head: str, text: Callable[[Row], str], right: bool = True, expendable: int = 0) -> Shown:
    return Shown(head, tuple(text(row) for row in summary.rows), right, expendable)


def _state(row: Row) -> str:
    fixed, cached = row.state_fixed, row.state_cached
    return NOTHING if fixed is None or cached is None else f"{count(fixed)} + {count(cached)}"


def difference_text(row: Row) -> str:
    """Return the difference from the baseline and its interval, e.g. `-0.162 [-0.184, -0.139]`.

    If there is no interval, words replace it. `(ceiling)` is appended if the row and its baseline both reach 0.99.
    """
    gap = row.difference
    if gap is None:
        return "baseline"
    if gap.kind == "alone":
        return "no baseline"
    if gap.kind == "lost":
        return "both diverged"
    if gap.kind == "slices":
        return "other slices"
    if gap.kind == "versions":
        return "other version"
    if gap.mean is None:
        return "no look yet" if gap.kind == "waiting" else NOTHING
    mark = " (ceiling)" if row.ceiling else ""
    if gap.kind in ("identical", "same"):
        return ("identical" if gap.kind == "identical" else "same accuracy") + mark
    few = f"({gap.n} pair{'s' * (gap.n > 1)})"
    tail = {"tested": signed_interval(gap), "constant": "on every seed", "few": few}[gap.kind]
    return f"{signed(gap.mean)} {tail}{mark}"


def look_text(row: Row, summary: Summary) -> str:
    """Return the number of the last look that included the row, e.g. `2 of 5`."""
    rule, result = summary.plan.until, row.look_result
    if result is None or rule is None or result.n not in rule.looks:
        return NOTHING
    return f"{rule.looks.index(result.n) + 1} of {len(rule.looks)}"


def against_share(row: Row) -> str:
    """Return the corrected p next to the share of the error that the look may spend, e.g. `0.0021 ≤ 0.003`."""
    result = row.look_result
    if result is None or result.p is None or result.share is None:
        return NOTHING
    p = "<0.0001" if result.p < 0.0001 else f"{result.p:.4f}"
    return f"{p} {'≤' if result.p <= result.share else '>'} {result.share:.4g}"


def look_verdict(row: Row, summary: Summary) -> str:
    """Return the verdict on a row of a sequential grid in a few words."""
    result, rule = row.look_result, summary.plan.until
    if result is None or rule is None:
        return NOTHING
    if result.state in TOLD:
        return TOLD[result.state]
    if result.state == "even":
        return f"even, within {rule.even:g}"
    if result.state == "not separable":
        return f"not separable by {rule.most}"
    if result.state == "open":
        return f"open: {seeds_text(row, summary)}"
    if result.state == "waiting":
        return "open: no look yet"
    if result.state in ("unmended", "failed"):
        return f"no verdict: {result.why}"
    return "identical" if result.state == "identical" else NOTHING


def seeds_text(row: Row, summary: Summary) -> str:
    """Return the number of seeds that would tell an open row, e.g. `about 12 seeds, 17 to be safe`."""
    about, safe = seeds_of(row, summary)
    if about is None:
        return "no number of seeds would tell"
    return f"about {_number(about)} seeds, {_number(safe)} to be safe"


def seeds_of(row: Row, summary: Summary) -> tuple[int | None, int | None]:
    """Return the number of seeds that tells an open row with a power of about 80 %, and a number on the safe side.

    Both are `None` if the row is not open or its difference is 0; a number above 100,000 is `None` too.
    """
    result, rule, progress = row.look_result, summary.plan.until, summary.looks
    if result is None or result.gap is None or result.state != "open" or rule is None or progress is None:
        return None, None
    return seeds_to_tell(result.gap, rule.shares[-1], progress.compared)


def _number(seeds: int | None) -> str:
    return f"more than {PLENTY:,}" if seeds is None or seeds > PLENTY else f"{seeds:,}"

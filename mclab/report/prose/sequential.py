"""Write sentences on a sequential grid: the verdict on each row at its last look, and what remains to be done."""

from collections.abc import Iterator, Sequence

from mclab.report.table.columns import against_share, seeds_text
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import listed, signed_interval


def how_to_read_looks(summary: Summary, baseline: str) -> Iterator[str]:
    """Yield sentences on how the looks divide the error, and on the errors that this does not prevent."""
    rule, progress = summary.plan.until, summary.looks
    assert rule is not None
    assert progress is not None
    looks = ", ".join(f"{n} seeds {100 * share:.3g} %" for n, share in zip(rule.looks, rule.shares, strict=True))
    yield (
        f"Difference: row minus {baseline}, paired by seed, over the seeds of the row's last look; the interval covers "
        f"at least 96 % a row although looking decided the number of seeds. p: paired t test, times the rows that Holm "
        f"still counts of {progress.compared}. A row is told where p is at most the look's share of the error of 5 %: "
        f"{looks}; looks, shares, rows, margin and resolution ({rule.step:.2g}) were in plan.json before the runs."
    )
    yield (
        "Not separable: given up, since the chance that the last look tells it is below 10 %; that is not even. About "
        "n seeds: those that would tell the row with 80 % at the observed difference, less its bias; to be safe: at "
        "the one-sided 80 % lower limit of it. Rows settled at different looks are not ranked among each other."
    )
    yield (
        "The error is kept for equal cells; where only means are equal and differences are strongly skewed it is 16 to "
        "35 %. Verdicts are on seeds that learn: see the number that did not."
    )


def sequential_verdict(summary: Summary) -> Iterator[str]:
    """Yield the verdicts on the rows (better or worse, even, identical, given up, open, failed) and what to do next."""
    rule, progress = summary.plan.until, summary.looks
    assert rule is not None
    assert progress is not None
    name, by = (
        summary.baseline,
        {state: _rows(summary, state) for state in ("even", "identical", "not separable", "open")},
    )
    for row in (*_rows(summary, "better"), *_rows(summary, "worse")):
        yield _settled(row, name)
    if rows := by["even"]:
        yield f"{_names(rows)} {_be(rows)} even with {name}: the difference is within {rule.even:g} (by two t tests)."
    if rows := by["identical"]:
        yield f"{_names(rows)} {_be(rows)} identical to {name}: equal accuracy and loss on every seed."
    for row in by["not separable"]:
        yield (
            f"{row.in_text} is not separable from {name} by {rule.most} seeds: given up at {_n(row)}, since the chance "
            f"to be told then is below 10 %. That does not make it even."
        )
    for row in by["open"]:
        yield f"{row.in_text} is open after {_n(row)} seeds: {seeds_text(row, summary)}."
    for row in _rows(summary, "failed"):
        yield f"No verdict on {row.in_text}: {row.look_result.why if row.look_result else ''}."
    yield from _next(summary, by["open"])


def _next(summary: Summary, left: Sequence[Row]) -> Iterator[str]:
    rule, progress = summary.plan.until, summary.looks
    assert rule is not None
    assert progress is not None
    if progress.under_way:
        yield f"The look at {progress.under_way} seeds is under way; the same command continues with it."
    elif left:
        first = summary.plan.seeds[-1] + 1
        yield (
            f"The error of 5 % is spent after {rule.most} seeds: more are a new experiment, with other seeds and more "
            f"looks (seeds: {{until: told, from: {first}, looks: [...]}})."
        )


def _settled(row: Row, name: str) -> str:
    result, gap = row.look_result, row.difference
    assert result is not None
    assert gap is not None
    side = "above" if result.state == "better" else "below"
    return (
        f"{row.in_text} is told {side} {name}, by {abs(gap.mean or 0.0):.3f} ± {gap.std or 0.0:.3f} (interval "
        f"{signed_interval(gap)}, corrected p {against_share(row)}, {gap.n} seeds)."
    )


def _rows(summary: Summary, state: str) -> list[Row]:
    return [row for row in summary.rows if row.look_result and row.look_result.state == state]


def _n(row: Row) -> int:
    return row.look_result.n if row.look_result else 0


def _names(rows: Sequence[Row]) -> str:
    return listed([row.in_text for row in rows])


def _be(rows: Sequence[Row]) -> str:
    return "is" if len(rows) == 1 else "are"

"""A second test, on the seeds where row and baseline both learned: a difference that failed runs hide."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mclab.config.stored import StoredRun
from mclab.report.stats import Difference, holm, paired
from mclab.report.table.columns import p_text, signed_interval
from mclab.report.table.learned import learned
from mclab.report.table.row import Row, scores
from mclab.report.table.rows import baselines_of
from mclab.report.table.summary import Summary


@dataclass(frozen=True)
class Second:
    """`difference` over the seeds where both learned, `p` by Holm over all such tests, of the `shared` seeds."""

    row: Row
    difference: Difference
    p: float
    shared: int


def second_tests(summary: Summary) -> list[Second]:
    """Of the rows with a verdict where some run of a pair did not learn and at least three pairs did.

    It answers another question than the first test, how well they recall once they recall, and does not replace it: how
    often a row learns is a property of the row as well.
    """
    found = []
    for row, base in zip(summary.rows, baselines_of(summary.rows), strict=True):
        baseline = None if base is None else summary.rows[base]
        if baseline is None or baseline is row or row.unmended or not (row.not_learned or baseline.not_learned):
            continue
        gap = paired(_that_learned(row.records), _that_learned(baseline.records))
        shared = len(scores(row.records).keys() & scores(baseline.records).keys())
        if gap.p is not None and gap.n < shared:
            found.append((row, gap, gap.p, shared))
    adjusted = holm([p for _, _, p, _ in found])
    return [Second(row, gap, p or 0.0, n) for (row, gap, _, n), p in zip(found, adjusted, strict=True)]


def _that_learned(records: Mapping[int, StoredRun]) -> dict[int, float]:
    return scores({seed: record for seed, record in records.items() if learned(record)})


def told_of_both(summary: Summary) -> Iterator[str]:
    """The second tests as sentences, called so."""
    looks = ", not corrected for looks" if summary.way else ""
    for each in second_tests(summary):
        gap = each.difference
        side = "above" if (gap.mean or 0.0) > 0 else "below"
        yield (
            f"Second test, on the {gap.n} of {each.shared} seeds where both learned: {each.row.told} is "
            f"{abs(gap.mean or 0.0):.3f} {side} {summary.baseline} (95 % interval {signed_interval(gap)}, Holm p "
            f"{_equals(p_text(each.p))}{looks}). It says how well they recall once they do, and nothing of how often."
        )


def _equals(p: str) -> str:
    return f"< {p[1:]}" if p.startswith("<") else f"= {p}"

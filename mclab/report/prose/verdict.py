"""Write the results of a table as sentences: which rows differ from the baseline, and what may help with the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mclab.config.stored import StoredRun
from mclab.report.prose.advice import MORE_SEEDS, more_seeds, more_seeds_may_tell
from mclab.report.prose.sequential import sequential_verdict
from mclab.report.stats import ALPHA, LEAST_PAIRS, Difference, holm, paired
from mclab.report.table.accuracy import AT_CHANCE, EDGE, FEW_STARTED, IMPROVING, SOLVED, learned, scores
from mclab.report.table.baseline import baselines_of
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import MOST_LISTED, listed, p_text, signed_interval


def verdict(summary: Summary) -> list[str]:
    """Return sentences on rows that differ from the baseline, equal it, or have no clear result; then advice."""
    if not summary.rows:
        return []
    if summary.looks:
        return [
            *unplanned(summary),
            *_mend(summary),
            *sequential_verdict(summary),
            *second_test_sentences(summary),
            *_lost(summary),
            *_ceiling([row for row in summary.rows if row.p is not None and row.p >= ALPHA]),
        ]
    return [*unplanned(summary), *_mend(summary), *_fixed(summary), *second_test_sentences(summary)]


def _fixed(summary: Summary) -> list[str]:
    """Return the verdicts of a plan with a fixed number of seeds."""
    name = summary.baseline
    compared = [row for row in summary.rows if not row.unmended]
    gaps = [(row, row.difference) for row in compared if row.difference and row.difference.mean is not None]
    apart = [(row, gap) for row, gap in gaps if row.p is not None and row.p < ALPHA]
    level = [row for row, gap in gaps if row.p is not None and row.p >= ALPHA]
    lines = [*(_differing(apart, name) if len(apart) <= MOST_LISTED else _counted(apart, len(gaps), name))]
    lines += [_constant(row, gap, name) for row, gap in gaps if gap.kind == "constant"]
    identical = [row for row, gap in gaps if gap.kind == "identical"]
    same = [row for row, gap in gaps if gap.kind == "same"]
    if identical:
        lines.append(
            f"{_names(identical)} {_be(identical)} identical to {name}: equal accuracy and loss on every seed."
        )
    lines += [*_same(same, name)]
    if level:
        lines.append(f"{_names(level)} cannot be told from {name} (Holm p {_range(level)}).")
    few = [row for row, gap in gaps if gap.kind == "few"]
    if few:
        lines.append(f"{_names(few)} {_be(few)} not tested: fewer than {LEAST_PAIRS} seeds in common with {name}.")
    aside = [row for row in summary.rows if row.difference and row.difference.kind == "slices"]
    if aside:
        lines.append(f"{_names(aside)} {_be(aside)} not compared with {name}: scored on other slices.")
    older = [row for row in summary.rows if row.difference and row.difference.kind == "versions"]
    if older:
        lines.append(
            f"{_names(older)} {_be(older)} not compared with {name}: trained with other versions of a formula."
        )
    lines += [*_lost(summary)]
    return [*lines, *_advice(summary, [*level, *few], [*level, *same])]


def _differing(apart: Sequence[tuple[Row, Difference]], name: str) -> Iterator[str]:
    for row, gap in apart:
        yield f"{row.in_text} is {_size(gap)} ± {gap.std:.3f} {_side(gap)} {name} ({_evidence(row, gap)})."


def _counted(apart: Sequence[tuple[Row, Difference]], compared: int, name: str) -> Iterator[str]:
    """Yield how many rows differ, and the largest difference in each direction. Used if rows are too many to list."""
    yield f"{len(apart)} of {compared} rows differ from {name} (Holm p < {ALPHA})."
    ordered = sorted(apart, key=lambda pair: pair[1].mean or 0.0)
    for side, (row, gap) in (("above", ordered[-1]), ("below", ordered[0])):
        if _side(gap) == side:
            yield f"Furthest {side} is {row.in_text}, by {_size(gap)} ± {gap.std:.3f} ({_evidence(row, gap)})."


def _constant(row: Row, gap: Difference, name: str) -> str:
    seeds = f"each of {gap.n} seeds; a t test cannot judge a difference that does not vary"
    return f"{row.in_text} is {_size(gap)} {_side(gap)} {name} on {seeds}."


def _same(rows: Sequence[Row], name: str) -> Iterator[str]:
    """Yield sentences on rows with the baseline's accuracies but other losses: at the ceiling, then below it."""
    for high, end in ((True, ", both at the ceiling"), (False, "")):
        own = [row for row in rows if bool(row.ceiling) == high]
        if own:
            yield f"{_names(own)} {'has' if len(own) == 1 else 'have'} the same accuracy as {name} on every seed{end}."


def _lost(summary: Summary) -> Iterator[str]:
    """Yield a sentence on rows, the baseline included, in which every run diverged.

    Their accuracies of 0 say nothing about the task.
    """
    rows = [row for row in summary.rows if row.lost]
    if rows:
        yield f"{_names(rows)} diverged in every run (accuracy 0): a lower learning rate may help, more seeds will not."


def _evidence(row: Row, gap: Difference) -> str:
    return f"95 % interval {signed_interval(gap)}, Holm p {_equals(p_text(row.p))}, {gap.n} seeds"


def unplanned(summary: Summary) -> Iterator[str]:
    """Yield a warning if seeds, rows or looks were added after results could be seen."""
    if summary.plan.looked and len(summary.rows) > 1:
        yield (
            f"Unplanned look, p not corrected: seeds, rows or looks were added after results of "
            f"{listed([str(n) for n in summary.plan.looked])} seeds were there to be seen."
        )


#: For each mark of a row: what it says about the row, and what to do about it.
_MEND = {
    AT_CHANCE: (
        "not above a predictor that does not recall",
        "first more steps or another learning rate, then more seeds",
    ),
    FEW_STARTED: (
        "of mostly runs that never started to learn",
        "first more steps or another learning rate, then more seeds",
    ),
    IMPROVING: ("still improving when training ended", "first more steps, then more seeds"),
    EDGE: ("with a value at the edge of its range", "first a wider range, then more seeds"),
}


def _mend(summary: Summary) -> Iterator[str]:
    """Yield sentences on the rows that have a mark and therefore no verdict, the most serious mark first."""
    for mark, (what, first) in _MEND.items():
        if rows := [row for row in summary.rows if mark in row.marks]:
            them = "it" if len(rows) == 1 else "them"
            yield f"{_names(rows)} {_be(rows)} {what}: {first}; until then nothing follows from {them}."
    if unjudged := [row for row in summary.rows if row.unmended and not (row.marks or row.lost)]:
        yield f"No verdict on {_names(unjudged)}, since {summary.baseline} must be mended first."


def _ceiling(level: Sequence[Row]) -> Iterator[str]:
    if any(row.ceiling for row in level):
        yield f"Where a row and the baseline both reach {SOLVED}, a harder task or a smaller model may tell them apart."


def _advice(summary: Summary, unclear: Sequence[Row], level: Sequence[Row]) -> Iterator[str]:
    if more_seeds_may_tell(summary, unclear):
        yield f"{MORE_SEEDS}{more_seeds(summary.plan.seeds)}"
    yield from _ceiling(level)


def _side(gap: Difference) -> str:
    return "above" if (gap.mean or 0.0) > 0 else "below"


def _size(gap: Difference) -> str:
    return f"{abs(gap.mean or 0.0):.3f}"


def _range(rows: Sequence[Row]) -> str:
    ps = sorted(row.p for row in rows if row.p is not None)
    low, high = p_text(ps[0]), p_text(ps[-1])
    return f"= {low}" if low == high else f"{low} to {high}"


def _names(rows: Sequence[Row]) -> str:
    return listed([row.in_text for row in rows])


def _be(rows: Sequence[Row]) -> str:
    return "is" if len(rows) == 1 else "are"


@dataclass(frozen=True)
class Second:
    """The second test of a row: its `difference` from the baseline over the seeds in which both runs learned.

    `p` is Holm-adjusted over all second tests. `shared` is the number of seeds that row and baseline have in common.
    """

    row: Row
    difference: Difference
    p: float
    shared: int


def second_tests(summary: Summary) -> list[Second]:
    """Return the second tests of rows with a verdict, each over the seeds in which both the row and the baseline
    learned.

    A row has one if at least one run of some pair did not learn, and both runs learned in at least three pairs. The
    second test asks how well a row recalls once it has learned to. It does not replace the first test, since how often
    a row learns is a property of the row too.
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


def second_test_sentences(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each second test (see `second_tests`), which begins with the words "Second test"."""
    looks = ", not corrected for looks" if summary.looks else ""
    for each in second_tests(summary):
        gap = each.difference
        side = "above" if (gap.mean or 0.0) > 0 else "below"
        yield (
            f"Second test, on the {gap.n} of {each.shared} seeds where both learned: {each.row.in_text} is "
            f"{abs(gap.mean or 0.0):.3f} {side} {summary.baseline} (95 % interval {signed_interval(gap)}, Holm p "
            f"{_equals(p_text(each.p))}{looks}). It says how well they recall once they do, and nothing of how often."
        )


def _equals(p: str) -> str:
    return f"< {p[1:]}" if p.startswith("<") else f"= {p}"

"""How a row of a sequential grid stands at its last look, in a few words, for tables."""

from mclab.report.align import NOTHING
from mclab.report.sequential import seeds_to_tell
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary

#: More seeds than this are told as so many.
PLENTY = 1000
TOLD = {"better": "told better", "worse": "told worse"}


def look_text(row: Row, summary: Summary) -> str:
    """`2 of 5`: the last look that the row took part in."""
    rule, stand = summary.plan.until, row.standing
    if stand is None or rule is None or stand.n not in rule.looks:
        return NOTHING
    return f"{rule.looks.index(stand.n) + 1} of {len(rule.looks)}"


def against_share(row: Row) -> str:
    """`0.0021 ≤ 0.003`: the corrected p against what the look may spend."""
    stand = row.standing
    if stand is None or stand.p is None or stand.share is None:
        return NOTHING
    p = "<0.0001" if stand.p < 0.0001 else f"{stand.p:.4f}"
    return f"{p} {'≤' if stand.p <= stand.share else '>'} {stand.share:.4g}"


def standing_text(row: Row, summary: Summary) -> str:
    """The verdict on a row, in a few words."""
    stand, rule = row.standing, summary.plan.until
    if stand is None or rule is None:
        return NOTHING
    if stand.state in TOLD:
        return TOLD[stand.state]
    if stand.state == "even":
        return f"even, within {rule.even:g}"
    if stand.state == "not separable":
        return f"not separable by {rule.most}"
    if stand.state == "open":
        return f"open: {seeds_text(row, summary)}"
    if stand.state == "waiting":
        return "open: no look yet"
    if stand.state in ("unmended", "failed"):
        return f"no verdict: {stand.why}"
    return "identical" if stand.state == "identical" else NOTHING


def seeds_text(row: Row, summary: Summary) -> str:
    """How many seeds would tell an open row: `about 12 seeds, 17 to be safe`."""
    about, safe = seeds_of(row, summary)
    if about is None:
        return "no number of seeds would tell"
    return f"about {_number(about)} seeds, {_number(safe)} to be safe"


def seeds_of(row: Row, summary: Summary) -> tuple[int | None, int | None]:
    """About how many seeds would tell an open row with a power of 80 %, and how many to be safe."""
    stand, rule, way = row.standing, summary.plan.until, summary.way
    if stand is None or stand.gap is None or stand.state != "open" or rule is None or way is None:
        return None, None
    return seeds_to_tell(stand.gap, rule.shares[-1], way.compared)


def _number(seeds: int | None) -> str:
    return f"more than {PLENTY:,}" if seeds is None or seeds > PLENTY else f"{seeds:,}"

"""`mclab compare`: two groups of stored runs side by side."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mclab.cli import options as of
from mclab.cli.output import in_columns, remark, result, result_json

if TYPE_CHECKING:
    from mclab.verbs.compare import Comparison


def compare(
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER ROW ROW",
            help="Two rows of a table, each by its name or by key=value,key=value. Across folders: "
            "FOLDER:ROW FOLDER:ROW, or FOLDER FOLDER for every row that both have.",
        ),
    ],
    as_json: of.Json = False,
) -> None:
    """Compare two groups of stored runs, seed by seed.

    Prints means, difference and paired test for each slice, and what else differs between the groups.
    """
    from mclab.verbs.compare import comparisons

    found = comparisons(groups, remark)
    if as_json:
        return result_json([each.as_dict() for each in found])
    return result("\n\n".join(map(comparison_text, found)))


def comparison_text(found: "Comparison") -> str:
    """Return a comparison as text: for each slice both means, difference, interval and p; then what else differs."""
    from mclab.report.text import mean_std, p_text

    first, second = found.first, found.second
    extra = any(row.slices.keys() - set(row.own) for row in (*first.rows, *second.rows))
    whole = "mean of own" if extra else "all slices"
    rows = [("slice", "first", "second", "second minus first", "p")]
    for line in found.lines:
        part = whole if line.part == "all" and len(found.lines) > 1 else line.part
        rows.append((part, mean_std(line.first), mean_std(line.second), _gap(line.gap), p_text(line.gap.p)))
    where = ("", "") if first.folder == second.folder else (f"  ({first.folder})", f"  ({second.folder})")
    return "\n".join(
        [
            f"first:  {first.name}{where[0]}",
            f"second: {second.name}{where[1]}",
            "",
            in_columns(rows, right=(1, 2, 3, 4)),
            "",
            *_reading(found),
        ]
    )


def _gap(gap: Any) -> str:
    from mclab.report.text import signed, signed_interval

    if gap.mean is None:
        return "no seed in common"
    tails = {
        "tested": signed_interval(gap),
        "constant": "on every seed",
        "same": "equal on every seed",
        "few": f"({gap.n} pair{'s' * (gap.n > 1)})",
    }
    return f"{signed(gap.mean)} {tails[gap.kind]}"


def _reading(found: "Comparison") -> Iterator[str]:
    pairs = max(line.gap.n for line in found.lines)
    tests = sum(line.gap.p is not None for line in found.lines)
    yield f"test accuracy, mean ± standard deviation (seeds); difference with 95 % interval, paired over {pairs} seeds"
    if tests:
        yield "p: paired t test, not adjusted for the number of tests" + (
            f"; without any true difference, one in 20 of the {tests} tests gives p < 0.05" * (tests > 1)
        )
    else:
        yield "p: no test was made; a test needs three seeds in common, and differences that are not all equal"
    if found.differs:
        yield f"the two sides differ in {'; '.join(found.differs)}"
    yield from (f"! they also differ in {line}" for line in found.also)

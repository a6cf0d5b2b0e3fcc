"""Compare a search with the confirming grid around its best point, axis by axis."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Literal

from mclab.plan.confirm import EVEN
from mclab.plan.space_trials import Trial
from mclab.report.sequential import LookState
from mclab.report.stats import ALPHA
from mclab.report.sweeps.study import Ranked, Study
from mclab.report.sweeps.tables import shown_value
from mclab.report.table.columns import Shown, against_share, difference_text, look_verdict
from mclab.report.table.grids import fit, markdown_escape, markdown_grid, text_grid
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import NOTHING, listed, p_text, seeds_text, signed, signed_interval

Verdict = Literal["better", "worse", "the same", "even", "open", "no verdict", "not compared"]
_OF_A_LOOK: dict[LookState, Verdict] = {
    "better": "better",
    "worse": "worse",
    "identical": "the same",
    "even": "even",
    "open": "open",
    "waiting": "open",
    "not separable": "open",
    "unmended": "no verdict",
    "failed": "no verdict",
    "not compared": "not compared",
}


@dataclass(frozen=True)
class Choice:
    """The choice on one axis: the axis with its importance, the best value, the rows of the grid with another value."""

    each: Ranked
    best: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Confirmed:
    """A study, one of its trials, the confirming grid around that trial, and the grid's rows by the axis that they
    change.

    `refused` are the changes that the rules between keys refuse.
    """

    study: Study
    trial: Trial
    summary: Summary
    choices: tuple[Choice, ...]
    refused: tuple[str, ...]


def confirmed(
    study: Study, trial: Trial, summary: Summary, axis_of: Callable[[str], str | None], refused: Sequence[str] = ()
) -> Confirmed:
    """Join a study and its confirming grid by axis. `axis_of` maps the name of a row to the path of the axis that it
    changes.

    The choices are in the order of importance.
    """
    choices = []
    for each in study.ranked:
        rows = tuple(row for row in summary.rows[1:] if axis_of(row.cell.name) == each.axis.path)
        if rows:
            choices.append(Choice(each, shown_value(trial.params[each.axis.path]), rows))
    return Confirmed(study, trial, summary, tuple(choices), tuple(refused))


def verdict_of(row: Row) -> Verdict:
    """Return how a row compares with the best point: by its last look, or with fixed seeds by Holm's p."""
    gap, result = row.difference, row.look_result
    if result is not None:
        return _OF_A_LOOK[result.state]
    if row.unmended:
        return "no verdict"
    if gap is None or gap.mean is None:
        return "not compared"
    if gap.kind in ("identical", "same"):
        return "the same"
    if row.p is not None and row.p < ALPHA:
        return "better" if gap.mean > 0 else "worse"
    return "open"


def _verdict_text(row: Row, summary: Summary) -> str:
    """Return the verdict on a row as text; if there is no verdict, the reason."""
    if summary.looks:
        return look_verdict(row, summary)
    return f"no verdict: {row.unmended}" if row.unmended else verdict_of(row)


def columns(found: Confirmed) -> list[Shown]:
    """Return the columns of a table with a row for each change: choice, importance, value, difference, verdict."""
    rows = [(choice, row) for choice in found.choices for row in choice.rows]
    sequential = found.summary.looks
    return [
        Shown("choice", tuple(f"{choice.each.name}={choice.best}" for choice, _ in rows), right=False),
        Shown("importance (search)", tuple(_importance(choice.each) for choice, _ in rows)),
        Shown("instead", tuple(_instead(row) for _, row in rows), right=False),
        Shown("difference (confirmation)", tuple(difference_text(row) for _, row in rows)),
        Shown("p", tuple(against_share(row) if sequential else p_text(row.p) for _, row in rows)),
        Shown("seeds", tuple(str(row.difference.n) if row.difference else NOTHING for _, row in rows)),
        Shown("verdict", tuple(_verdict_text(row, found.summary) for _, row in rows), right=False),
    ]


def _importance(each: Ranked) -> str:
    share, doubt = each.shares[0], each.doubt[0] if each.doubt else None
    text = NOTHING if share is None else f"{share:.2f}"
    return text if doubt is None else f"{text} [{doubt.lo:.2f}, {doubt.hi:.2f}]"


def _instead(row: Row) -> str:
    return row.cell.name.partition("=")[2] or row.cell.name


def verdict_lines(found: Confirmed) -> list[str]:
    """Return a verdict for each choice, then a comparison of search and grid, and how to read both."""
    return [*(_verdict(choice) for choice in found.choices), *_search_and_confirmation(found), *_how_to_read(found)]


def _verdict(choice: Choice) -> str:
    name = f"{choice.each.name}={choice.best}"
    by: dict[Verdict, list[Row]] = {}
    for row in choice.rows:
        by.setdefault(verdict_of(row), []).append(row)
    if "better" in by:
        return f"{name} is refuted: {_sizes(by['better'])} better."
    if "worse" in by:
        rest = [_instead(row) for word, rows in by.items() if word != "worse" for row in rows]
        other = f"; {listed(rest)} cannot be told from it" if rest else ""
        return f"{name} is confirmed: {_sizes(by['worse'])} worse{other}."
    if set(by) <= {"the same", "even"}:
        same = "gives the same" if set(by) == {"the same"} else f"is even with it, within {EVEN:g}"
        return f"{name} does not matter here: {listed([_instead(row) for row in choice.rows])} {same}."
    if "no verdict" in by:
        why = listed(list(dict.fromkeys(_why(row) for row in by["no verdict"])))
        return f"{name}: no verdict until runs are mended ({why}): more steps or another learning rate first."
    return f"{name} is open: {listed([_instead(row) for row in choice.rows])} cannot be told from it."


def _why(row: Row) -> str:
    return (row.look_result.why if row.look_result else row.unmended) or "at chance"


def _sizes(rows: Sequence[Row]) -> str:
    sizes = []
    for row in rows:
        gap = row.difference
        assert gap is not None
        sizes.append(f"{_instead(row)} by {abs(gap.mean or 0.0):.3f} {signed_interval(gap)}")
    return f"{listed(sizes)} {'is' if len(rows) == 1 else 'are'}"


def _search_and_confirmation(found: Confirmed) -> Iterator[str]:
    """Yield a sentence on whether search and grid agree about the most important axis.

    In the search it has the largest importance, in the grid the largest significant difference.
    """
    apart = [
        (abs(row.difference.mean or 0.0), choice, row)
        for choice in found.choices
        for row in choice.rows
        if row.difference and verdict_of(row) in ("better", "worse")
    ]
    first = found.choices[0].each if found.choices and found.study.weighed else None
    if not apart:
        yield "No choice is told apart at the best point: what the search ranks is not confirmed, nor refuted."
        return
    _, choice, row = max(apart, key=lambda each: each[0])
    assert row.difference is not None
    size = f"{choice.each.name} ({signed(row.difference.mean or 0.0)} for {_instead(row)})"
    if first is None:
        yield f"At the best point {size} matters most."
    elif choice.each is first:
        yield f"Search and confirmation agree on what matters most: {size}."
    else:
        yield f"The search ranks {first.name} first; at the best point {size} matters most."


def _how_to_read(found: Confirmed) -> Iterator[str]:
    plan = found.summary.plan
    seeds = f"from {plan.seeds[0]} on, until told," if plan.until else f"{seeds_text(plan.seeds)},"
    yield (
        f"A search proposes, an ablation decides. Importance: how the good trials of the whole space are spread along "
        f"an axis. Confirmation: one change at a time at the best point (trial {found.trial.number}), all else as "
        f"there, the learning rate too; on test, on seeds {seeds} which the search has not used; paired t test, "
        f"corrected."
    )
    for line in found.refused:
        yield f"Not tried, because the keys contradict each other: {line}"


def text(found: Confirmed, width: int = 120) -> str:
    """Return table and verdicts as the text at the end of a command."""
    lines = [fill(line, width, subsequent_indent="  ") for line in verdict_lines(found)]
    return "\n\n".join(["search and confirmation", text_grid(fit(columns(found), width)), "\n".join(lines)]) + "\n"


def page(found: Confirmed) -> str:
    """Return table and verdicts as a page of markdown."""
    lines = "\n".join(f"- {markdown_escape(line)}" for line in verdict_lines(found))
    return "\n\n".join([f"# {markdown_escape(found.study.title)}", markdown_grid(columns(found)), lines]) + "\n"

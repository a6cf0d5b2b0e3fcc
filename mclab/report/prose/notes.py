"""Write notes on a table: the meaning of marks, the seeds, failed runs, mixed devices and versions."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mclab.config.outcome import ALL
from mclab.config.own import written_versions
from mclab.config.stored import StoredRun, clashing
from mclab.config.versions import differing, versions
from mclab.plan.plan import CHANGE
from mclab.report.prose.sequential import how_to_read_looks
from mclab.report.stats import ALPHA, NOT_COMPARED
from mclab.report.table.accuracy import ABOVE, AT_CHANCE, FEW_STARTED, IMPROVING, LATE, RISE, SOLVED, STARTED
from mclab.report.table.columns import baselines
from mclab.report.table.row import Row
from mclab.report.table.summary import Summary
from mclab.report.text import MOST_LISTED, listed, reason, seeds_text, value_text

#: Properties of runs, each with its name and a function that reads it. A note is written if a table mixes several
#: values.
MIXABLE: tuple[tuple[str, Callable[[StoredRun], str | None]], ...] = (
    ("devices", lambda record: record.fact("device_name", "device")),
    ("torch versions", lambda record: record.fact("torch")),
    ("Python versions", lambda record: record.fact("python")),
    ("mclab versions", lambda record: record.fact("mclab")),
    ("science versions", lambda record: str(record.science)),
)

#: A note is written if some seeds solve the task and another seed is this far below `SOLVED`.
FAR = 0.2


def alarms(summary: Summary) -> list[str]:
    """Return sentences on what is unusual in the records; empty if nothing is.

    The terminal prints these sentences too.
    """
    kinds = (_mixed, _versions, _sources, _edges, _without_baseline, _all_or_nothing, _troubles, _retry)
    return [*summary.plan.warnings, *(line for kind in kinds for line in kind(summary))]


def notes(summary: Summary) -> list[str]:
    """Return sentences on how to read the table, then the alarms, then the notes of the plan."""
    return [*_how_to_read(summary), _overlap(summary), *alarms(summary), *summary.plan.notes]


def _how_to_read(summary: Summary) -> Iterator[str]:
    seeds = summary.plan.seeds
    said = f"Seeds {seeds_text(seeds)}" + (", added until every row is told" if summary.looks else "")
    yield (
        f"{said}. Accuracy: mean ± standard deviation over seeds (number of seeds), on test; a "
        f"diverged run counts as 0. 95 %: Student's t interval of the mean, clipped to [0, 1]."
    )
    yield from _scored(summary)
    if others := sum(row.difference is not None and row.difference.kind not in NOT_COMPARED for row in summary.rows):
        fixed = (
            f"Difference: row minus {_baseline(summary)}, paired by seed, with its 95 % t interval "
            f"(per row, not adjusted). p: paired t test, Holm-adjusted over {others} row{'s' * (others > 1)}."
        )
        yield from how_to_read_looks(summary, _baseline(summary)) if summary.looks else [fixed]
    yield (
        f"Solved: seeds with accuracy of at least {SOLVED}. Steps to 99 %: median over seeds, on valid; a seed that "
        f"never gets there counts as last. State: size of the state in floats, fixed + cached."
    )
    if summary.plan.select:
        yield _selection(summary)
    yield from _in_place_of_a_difference(summary)
    yield from _without_recall(summary)
    if any(row.ceiling for row in summary.rows):
        yield f"(ceiling), in csv ceiling: row and baseline both reach {SOLVED} on average, so a gap says little."
    if edged := [
        f"{summary.names[path]}_edge" for path in summary.selected if any(path in r.edges for r in summary.rows)
    ]:
        yield f"(edge), in csv {', '.join(edged)}: the chosen value is an end of its range; a better one may be beyond."


def _without_recall(summary: Summary) -> Iterator[str]:
    """Yield sentences on the baseline without recall: its definition, its predictors, the rows not above it."""
    if not (found := baselines(summary)):
        return
    yield (
        "Without recall: the best of the predictors that look at no key, fitted on training sequences and scored on "
        "the same test. (not above), in csv above_without_recall: by a one-sided paired t test over seeds "
        f"(p < {ALPHA}, not adjusted) the row is not above it; with fewer than three seeds, by its mean."
    )
    for label, each in found.items():
        named: dict[str, list[str]] = {}
        for part, best in each.best.items():
            named.setdefault(best.name, []).append("the mean" if part == ALL else part)
        told = "; ".join(f"{name} ({_parts(parts)})" for name, parts in named.items())
        yield f"The best without recall{f', {label}' * bool(label)}: {told}."
        if given := [part for part, best in each.best.items() if part != ALL and best.accuracy >= SOLVED]:
            yield f"On {_parts(given)} it is right by construction: the slice itself says which value is wanted."
    if any(row.not_learned for row in summary.rows):
        yield f"Did not learn: runs no more than {ABOVE} above the best predictor without recall of their own test."
    yield from _mend(summary)
    if rows := [row.in_text for row in summary.rows if row.guessing]:
        yield f"Not above a predictor that does not recall: {listed(rows)}."


def _mend(summary: Summary) -> Iterator[str]:
    """Yield the meaning of the marks that occur in the table."""
    words = {
        AT_CHANCE: "not above the best predictor without recall",
        FEW_STARTED: f"less than {100 * STARTED:.0f} % of the runs learned",
        IMPROVING: f"accuracy on valid rose by more than {RISE} in the last {100 * (1 - LATE):.0f} % of the steps, "
        f"on average over seeds and by a one-sided t test",
    }
    found = [f"{mark}: {meaning}" for mark, meaning in words.items() if any(mark in row.marks for row in summary.rows)]
    if found:
        yield f"First mend: what must be mended before the row gets a verdict: {'; '.join(found)}."


def _parts(parts: Sequence[str]) -> str:
    return listed(parts) if len(parts) <= MOST_LISTED else f"{parts[0]} to {parts[-1]}"


def _scored(summary: Summary) -> Iterator[str]:
    """Yield sentences on how accuracy and further metrics are measured, where that is not obvious."""
    if summary.extras:
        own = [part for part in summary.slices if part not in summary.extras]
        yield (
            f"Accuracy is the mean over the task's own slices ({_parts(own)}); those that eval.task adds have columns "
            f"of their own and are in no mean, no difference and no choice."
        )
    if summary.long_answers:
        yield (
            "Accuracy: share of answers that are right as a whole; token accuracy: share of their tokens, each after "
            "the right ones before it."
        )
    if summary.several_values:
        yield "Value accuracy: share of single values that are right as a whole, each after the right ones before it."
    if any(row.free_answers for row in summary.rows):
        yield (
            "Values found: share of the wanted values that a freely generated answer contains at any "
            "place (RULER's score)."
        )


def _in_place_of_a_difference(summary: Summary) -> Iterator[str]:
    """Yield the meaning of the words that replace a number in the column of differences."""
    kinds = {row.difference.kind for row in summary.rows if row.difference}
    if "identical" in kinds:
        yield (
            "identical: accuracy and test loss are equal on every seed and slice, so the function is "
            "the same and has no p."
        )
    if "same" in kinds:
        yield "same accuracy: the accuracy is equal on every seed, but test losses or slices differ; there is no p."
    if "alone" in kinds:
        yield "no baseline: the first change has no cell with the same other values, so the row is not compared."
    if "slices" in kinds:
        yield (
            "other slices: the row has other slices than the baseline, so it is not compared and "
            "does not count for Holm."
        )
    if "versions" in kinds:
        yield (
            "other version: the row has another version of a formula than the baseline; not compared, "
            "not counted for Holm."
        )


def _baseline(summary: Summary) -> str:
    if summary.crossed:
        return f"{value_text(summary.rows[0].values[CHANGE])} with the same other values"
    own = summary.rows[0].in_text
    return f"{own} (the baseline)" if own == summary.baseline else f"{summary.baseline} ({own})"


def _selection(summary: Summary) -> str:
    select = summary.plan.select
    assert select is not None
    candidates = max(len(row.cell.candidates) for row in summary.rows)
    keys = ", ".join(summary.names[path] for path in select.over)
    return (
        f"{keys}: chosen in every row among {candidates} candidates, by the mean {select.by} of the first "
        f"{select.seeds} seeds."
    )


def _overlap(summary: Summary) -> str:
    known = [record.overlap for record in _records(summary.rows) if record.overlap is not None]
    if not known:
        return "Overlap of test with train: not measured."
    return f"Largest measured overlap of test with train: {max(known):.2%} of the test sequences."


def _records(rows: Sequence[Row]) -> Iterator[StoredRun]:
    for row in rows:
        yield from row.records.values()


def _mixed(summary: Summary) -> Iterator[str]:
    for words, told in MIXABLE:
        found = Counter(told(record) for record in _records(summary.rows))
        found.pop(None, None)
        if len(found) > 1:
            parts = sorted(f"{value} ({n} run{'s' * (n > 1)})" for value, n in found.items())
            yield f"Mixed {words}: {', '.join(parts)}."


def _versions(summary: Summary) -> Iterator[str]:
    """Yield sentences on runs that were made with different versions of a formula, or with an old one."""
    records = list(_records(summary.rows))
    for part, several in clashing(records).items():
        yield f"Mixed versions of {part}: {' and '.join(several)}; rows that differ in it are not compared."
    old = Counter(
        moved for record in records if record.config and (moved := differing(record.versions, versions(record.config)))
    )
    for moved, n in sorted(old.items()):
        yield f"{n} run{'s' * (n > 1)} made with {moved} now: the same command trains {'them' if n > 1 else 'it'} anew."


def _sources(summary: Summary) -> Iterator[str]:
    """Yield sentences on the user's own parts whose source file changed although their version number did not."""
    found: dict[tuple[str, int], Counter[str]] = {}
    for record in _records(summary.rows):
        sources = (record.provenance or {}).get("sources")
        if record.config is None or not isinstance(sources, dict):
            continue
        for path, version in written_versions(record.config).items():
            found.setdefault((path, version), Counter())[str(sources.get(path, "unknown"))] += 1
    for (path, version), hashes in found.items():
        if len(hashes) > 1:
            parts = sorted(f"{value} ({n} run{'s' * (n > 1)})" for value, n in hashes.items())
            yield (
                f"Mixed sources of {path}, all of them version {version}: {', '.join(parts)}. If what changed in the "
                f"file matters, raise its version, and the same command trains its runs anew."
            )


def _edges(summary: Summary) -> Iterator[str]:
    for path in summary.selected:
        rows = [row.in_text for row in summary.rows if path in row.edges]
        if rows:
            yield f"{summary.names[path]} was chosen at the edge of its range in: {listed(rows)}. Widen the range."


def _without_baseline(summary: Summary) -> Iterator[str]:
    """Yield a sentence on rows whose old records lack a baseline without recall, if other rows have one."""
    rows = [row.in_text for row in summary.rows if row.accuracy.n and not row.without_recall]
    if rows and summary.baselined:
        yield f"No baseline without recall in: {listed(rows)}. Some of their records are older than this figure."


def _all_or_nothing(summary: Summary) -> Iterator[str]:
    """Yield a sentence on each cell where some seeds solve the task and another is far below.

    Such accuracies are not normal, so a t interval misleads.
    """
    for row in summary.rows:
        if row.solved and (row.accuracy.min or 0.0) < SOLVED - FAR:
            yield (
                f"{row.in_text}: {row.solved} of {row.accuracy.n} seeds solve the task, the lowest reaches "
                f"{row.accuracy.min:.3f}; a t interval misleads there, so look at the single seeds."
            )


def _troubles(summary: Summary) -> Iterator[str]:
    """Yield sentences on runs that did not finish, on missing seeds, and on rows without a chosen candidate."""
    for row in summary.rows:
        for seed, record in row.records.items():
            if record.status == "diverged":
                yield f"{row.in_text}, seed {seed}: diverged at step {record.diverged_step}."
            elif record.status != "done":
                yield f"{row.in_text}, seed {seed}: {record.status}{reason(record.error)}."
        if row.missing:
            yield f"{row.in_text}: no record yet of seed {seeds_text(row.missing)}."
        if row.candidate is None:
            yield f"{row.in_text}: no value is chosen yet ({row.status})."


def _retry(summary: Summary) -> Iterator[str]:
    if any(word in row.status for row in summary.rows for word in ("oom", "failed")):
        yield "Runs that failed or ran out of memory run again with --retry-failed."

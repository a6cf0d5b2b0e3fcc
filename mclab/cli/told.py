"""What a run, a comparison and a machine look like to people."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mclab.cli.texts import in_columns, section
from mclab.report.characters import level, marks_for
from mclab.report.text import NOTHING

if TYPE_CHECKING:
    from mclab.compare import Comparison
    from mclab.config.stored import StoredRun, StoredScore
    from mclab.doctor import Finding
    from mclab.show import Found

#: Letters of a curve at most.
_WIDEST = 60
_MARKS = {"ok": " ", "note": "-", "broken": "!"}
#: What there is to say of a run that was stored before records had checksums.
_UNSIGNED = "stored without checksums, by an earlier version: damage to its files may go unnoticed"
_DIGITS = {"overlap": 4, "tokens_per_s": 0, "wall_s": 1}


def run_text(found: "Found", every: bool) -> str:
    """A record in sections: what it is, keys, scores, cost, provenance, curve."""
    sections = [_head(found), _keys(found.record, every), _scores(found.record), _figures(found.record)]
    sections += [_provenance(found.record), _curves(found.curve)]
    return "\n\n".join(section for section in sections if section)


def _head(found: "Found") -> str:
    record = found.record
    head = f"run {record.run_id} in {found.folder}: {record.status}, seed {record.seed}"
    head += "" if found.trial is None else f", trial {found.trial}"
    lines = [head, *([record.error.strip()] if record.error else []), *([] if record.sha256 else [_UNSIGNED])]
    return "\n".join(lines)


def _keys(record: "StoredRun", every: bool) -> str:
    from mclab.config.keys import shown
    from mclab.show import idle_keys, keys_of

    own, rest = keys_of(record)
    lines = [(path, shown(value)) for path, value in own.items()]
    if not every:
        return section("keys that differ from the defaults (--all shows the others)", lines)
    idle = idle_keys(record)
    others = [(path, shown(value) + "  (without effect here)" * (path in idle)) for path, value in rest.items()]
    return f"{section('keys that differ from the defaults', lines)}\n\n{section('the others', others)}"


def _scores(record: "StoredRun") -> str:
    from mclab.show import scores

    rows = scores(record)
    if not any(test or valid for _, test, valid in rows):
        return ""
    columns = [("test", metric) for metric in ("accuracy", "value_accuracy", "values_found", "token_accuracy", "loss")]
    columns += [("valid", metric) for metric in ("accuracy", "loss")]
    found = [{"test": test, "valid": valid} for _, test, valid in rows]
    values = {(side, metric): [_metric(each[side], metric) for each in found] for side, metric in columns}
    kept = [column for column in columns if any(value is not None for value in values[column])]
    heads = [f"{side} {metric.replace('_', ' ')}" for side, metric in kept]
    lines = [[name, *(_number(values[column][at]) for column in kept)] for at, (name, _, _) in enumerate(rows)]
    return in_columns([["slice", *heads], *lines], right=range(1, len(kept) + 1))


def _metric(score: "StoredScore | None", name: str) -> float | None:
    return score.metrics.get(name) if score else None


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f}"


def _figures(record: "StoredRun") -> str:
    from mclab.show import figures

    lines = [(key, f"{value:,.{_DIGITS.get(key, 0)}f}") for key, value in figures(record)]
    return section("cost", lines) if lines else ""


def _provenance(record: "StoredRun") -> str:
    lines = [(key, NOTHING if value is None else str(value)) for key, value in (record.provenance or {}).items()]
    made = {**record.versions, **record.words}
    parts = [("versions", ", ".join(f"{part} {version}" for part, version in made.items()))] if made else []
    return section("provenance", [("science", str(record.science)), *parts, *lines])


def _curves(curve: Sequence[Mapping[str, Any]]) -> str:
    from mclab.report.table.accuracy import evaluations

    lines = []
    for metric, top in (("accuracy", 1.0), ("loss", None)):
        looks = list(evaluations(curve, metric))
        if looks:
            values = [value for _, value in looks]
            lines.append((metric, sparkline(values, top), f"{values[0]:.3f} to {values[-1]:.3f}"))
    if not lines:
        return ""
    steps = f"valid, steps {curve[0]['step']} to {curve[-1]['step']} ({len(curve)} looks)"
    return section(steps, lines)


def sparkline(values: Sequence[float], top: float | None = None) -> str:
    """A letter a value, from 0 to `top` (by default the largest); of many values evenly spaced ones, the last too."""
    many = len(values)
    if many > _WIDEST:
        values = [values[round(place * (many - 1) / (_WIDEST - 1))] for place in range(_WIDEST)]
    most = top or max(values) or 1.0
    marks = marks_for(getattr(sys.stdout, "encoding", None))
    return "".join(level(value / most, marks) for value in values)


def comparison_text(found: "Comparison") -> str:
    """Both sides on every slice, the difference with its interval and p, and what else is not equal."""
    from mclab.report.text import mean_std, p_text

    first, second = found.first, found.second
    extra = any(row.slices.keys() - set(row.own) for row in (*first.rows, *second.rows))
    whole = "mean of own" if extra else "all slices"
    rows = [("slice", "first", "second", "second less first", "p")]
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
        yield "p: paired t test, unadjusted" + (
            f"; of {tests} such tests one in 20 is below 0.05 by chance" * (tests > 1)
        )
    else:
        yield "p: no test; it takes three seeds in common, and differences that vary"
    if found.differs:
        yield f"differ in {'; '.join(found.differs)}"
    yield from (f"! also differ in {line}" for line in found.also)


def doctor_text(found: Sequence["Finding"]) -> str:
    """A block for each subject; `-` marks what is missing and can be done without, `!` what is broken."""
    blocks = []
    for about, group in groupby(found, key=lambda finding: finding.about):
        rows = [(_MARKS[each.state], each.name, each.value, each.cost) for each in group]
        blocks.append(section(about, rows))
    bad = sum(finding.state == "broken" for finding in found)
    end = f"{bad} broken: mend what is marked !" if bad else "all that mclab needs is there"
    return "\n".join([*blocks, end])

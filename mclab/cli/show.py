"""`mclab show`: print all that is stored of one run."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mclab.cli import options as of
from mclab.cli.output import in_columns, remark, result, result_json, section
from mclab.report.characters import level, marks_for
from mclab.report.text import NOTHING

if TYPE_CHECKING:
    from mclab.config.stored import StoredRun, StoredScore
    from mclab.verbs.show import Found

#: The most characters of a printed curve.
_WIDEST = 60
#: The line that is printed for a run that was stored before records had checksums.
_UNSIGNED = "stored without checksums by an earlier version of mclab, so damage to its files may go unnoticed"
_DIGITS = {"overlap": 4, "tokens_per_s": 0, "wall_s": 1}


def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Run id, or its first digits.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", parser=of.folder, help="Run folder. [default: any under runs/]")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every key, also those at their defaults.")] = False,
    as_json: of.Json = False,
) -> None:
    """Print one stored run: keys, scores, cost, provenance, curve."""
    from mclab.verbs.show import as_dict, find

    if folder is not None and Path(run).is_dir() and not folder.exists():
        run, folder = str(folder), Path(run)
    found = find(run, folder, remark)
    if as_json:
        return result_json(as_dict(found))
    return result(run_text(found, every))


def run_text(found: "Found", every: bool) -> str:
    """Return a record as text, in sections: head, keys, scores, cost, provenance, curve."""
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
    from mclab.verbs.show import idle_keys, keys_of

    own, rest = keys_of(record)
    lines = [(path, shown(value)) for path, value in own.items()]
    if not every:
        return section("keys that differ from the defaults (--all shows the others)", lines)
    idle = idle_keys(record)
    others = [(path, shown(value) + "  (without effect here)" * (path in idle)) for path, value in rest.items()]
    return f"{section('keys that differ from the defaults', lines)}\n\n{section('the others', others)}"


def _scores(record: "StoredRun") -> str:
    from mclab.verbs.show import scores

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
    from mclab.verbs.show import figures

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
    steps = f"valid, steps {curve[0]['step']} to {curve[-1]['step']} ({len(curve)} evaluations)"
    return section(steps, lines)


def sparkline(values: Sequence[float], top: float | None = None) -> str:
    """Return a plot of `values` with one character each, on a scale from 0 to `top`, by default the largest value.

    Of more than 60 values, 60 at even distances are drawn.
    """
    many = len(values)
    if many > _WIDEST:
        values = [values[round(place * (many - 1) / (_WIDEST - 1))] for place in range(_WIDEST)]
    most = top or max(values) or 1.0
    marks = marks_for(getattr(sys.stdout, "encoding", None))
    return "".join(level(value / most, marks) for value in values)

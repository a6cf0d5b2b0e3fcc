"""Write the files of a study: a page of markdown, and data frames."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from mclab.plan.space_trials import SpaceAxis, Trial, Trials
from mclab.report.sweeps.study import Study, clipped, how_to_read_study, metric_name, metric_text, status_lines
from mclab.report.sweeps.tables import head, importance_columns, marginal_columns, shown_value, trial_columns
from mclab.report.sweeps.trust import trust
from mclab.report.table.columns import Shown
from mclab.report.table.export import Column, as_csv, as_parquet, series, write_files
from mclab.report.table.grids import markdown_escape, markdown_grid
from mclab.report.text import NOTHING


def write_tables(found: Trials, folder: Path) -> list[Path]:
    """Write the tables of a study into `folder` and return their paths. The same trials give the same bytes.

    The files are `sweep.md`, `trials.csv` and `.parquet`, `importances.csv`, `marginals.csv` and, for two objectives,
    `front.csv`.
    """
    study = Study(found)
    trials = trials_frame(study)
    files = {
        "sweep.md": page(study).encode(),
        "trials.csv": as_csv(trials),
        "trials.parquet": as_parquet(trials),
        "importances.csv": as_csv(importances_frame(study)),
        "marginals.csv": as_csv(marginals_frame(study)),
    }
    if study.several:
        files["front.csv"] = as_csv(trials_frame(study, found.front()))
    return write_files(folder, files)


def page(study: Study) -> str:
    """Return the study as a page of markdown."""
    parts = [f"# {markdown_escape(study.title)}"]
    if study.found.done:
        parts += [f"{head(study)[0].upper()}{head(study)[1:]}:", markdown_grid(trial_columns(study))]
    if weights := importance_columns(study):
        parts += ["What matters:", markdown_grid(weights)]
    if marginals := marginal_columns(study):
        parts += ["Value by value:", markdown_grid(marginals)]
    parts += [
        "Notes:",
        "\n".join(
            f"- {markdown_escape(line)}" for line in (*status_lines(study), *trust(study), *how_to_read_study(study))
        ),
    ]
    return "\n\n".join(parts) + "\n"


def trials_frame(study: Study, rows: Sequence[Trial] | None = None) -> pl.DataFrame:
    """Return a frame with one row for each trial in `rows`, by default for all trials in the order of their numbers.

    The columns are the status, a value for each axis (null if the axis does not exist or has no effect), the metrics,
    the trial that it repeats (`repeat_of`) or retries (`retry_of`), cost, runs and error.
    """
    rows = study.found.trials if rows is None else rows
    metrics = dict.fromkeys(name for trial in study.found.trials for name in trial.metrics)
    columns: list[Column] = [
        ("trial", pl.Int64, [trial.number for trial in rows]),
        ("status", pl.String, [trial.status for trial in rows]),
        *((study.names[axis.path], _dtype(axis), [_live(axis, trial) for trial in rows]) for axis in study.found.axes),
        *((_column(name), pl.Float64, [trial.metrics.get(name) for trial in rows]) for name in metrics),
        ("repeat_of", pl.Int64, [trial.repeat_of for trial in rows]),
        ("retry_of", pl.Int64, [trial.retry_of for trial in rows]),
        ("diverged_step", pl.Int64, [trial.diverged_step for trial in rows]),
        ("duration_s", pl.Float64, [trial.duration_s for trial in rows]),
        ("run_ids", pl.String, [" ".join(trial.run_ids) for trial in rows]),
        ("error", pl.String, [trial.error for trial in rows]),
        *_last_looks(study, rows),
    ]
    return pl.DataFrame([series(*column) for column in columns])


def trials_shown(study: Study) -> list[Shown]:
    """Return the columns of a table of all trials: number, status, axes and metrics, as text."""
    rows, metrics = study.found.trials, list(dict.fromkeys(name for t in study.found.trials for name in t.metrics))
    columns = [
        Shown("trial", tuple(str(trial.number) for trial in rows)),
        Shown("status", tuple(trial.status for trial in rows), right=False),
    ]
    for axis in study.found.axes:
        texts = [NOTHING if (v := _live(axis, t)) is None and axis.path not in t.params else v for t in rows]
        columns.append(Shown(study.names[axis.path], tuple(_text(text) for text in texts), right=False))
    for name in metrics:
        known = [trial.metrics.get(name) for trial in rows]
        shown = tuple(NOTHING if value is None else metric_text(name, value) for value in known)
        columns.append(Shown(metric_name(name), shown))
    return columns


def _text(value: object) -> str:
    return shown_value(value) if value is None or isinstance(value, str | int | float | bool) else str(value)


def _last_looks(study: Study, rows: Sequence[Trial]) -> Iterator[Column]:
    """If trials were pruned, yield each trial's last evaluated step and its first objective there."""
    looks = study.found.looks
    if any(trial.status == "pruned" and looks.get(trial.number) for trial in study.found.trials):
        last = [max(looks.get(trial.number, {}), default=None) for trial in rows]
        yield "last_step", pl.Int64, last
        pairs = zip(rows, last, strict=True)
        yield "last_look", pl.Float64, [None if step is None else looks[trial.number][step] for trial, step in pairs]


def _dtype(axis: SpaceAxis) -> pl.DataType | type[pl.DataType] | None:
    return {"int": pl.Int64, "float": pl.Float64}.get(axis.kind)


def _live(axis: SpaceAxis, trial: Trial) -> object:
    return None if axis.path in trial.inert else trial.params.get(axis.path)


def _column(metric: str) -> str:
    return metric.replace(".", "_")


def importances_frame(study: Study) -> pl.DataFrame:
    """Return a frame with one row for each axis and the importances for each objective.

    As far as they are known, `_lo` and `_hi` are the interval, `_first` is the fraction of resamples in which the axis
    came first, and `_optuna` is the importance by Optuna's default estimator, if that differs.
    """
    columns: list[Column] = [("axis", pl.String, [each.axis.path for each in study.ranked])]
    for place, objective in enumerate(study.found.objectives):
        name = _column(objective.metric)
        columns.append((name, pl.Float64, [each.shares[place] for each in study.ranked]))
        if objective.metric in study.found.resampled:
            doubts = [each.doubt[place] for each in study.ranked]
            for part in ("lo", "hi", "first"):
                columns.append((f"{name}_{part}", pl.Float64, [each and getattr(each, part) for each in doubts]))
        if objective.metric in study.found.other:
            columns.append((f"{name}_optuna", pl.Float64, [each.other[place] for each in study.ranked]))
    return pl.DataFrame([series(*column) for column in columns])


def marginals_frame(study: Study) -> pl.DataFrame:
    """Return a frame with one row for each level: axis, value, and mean and interval of each objective.

    `n` trials are averaged, `not_done` trials are left out. If pruned trials are averaged too, `step` is the step of
    all results and `pruned` is the number of pruned trials.
    """
    rows = [(each, level) for each in study.ranked for level in each.levels]
    columns: list[Column] = [
        ("axis", pl.String, [each.axis.path for each, _ in rows]),
        ("value", pl.String, [level.label if level.there else None for _, level in rows]),
        ("n", pl.Int64, [len(level.trials) for _, level in rows]),
        ("not_done", pl.Int64, [level.lost for _, level in rows]),
    ]
    if study.judged.step is not None:
        columns.append(("step", pl.Int64, [study.judged.step for _ in rows]))
        columns.append(("pruned", pl.Int64, [level.pruned for _, level in rows]))
    for place, objective in enumerate(study.found.objectives):
        spreads = [level.objective(place) for _, level in rows]
        name = _column(objective.metric)
        columns.append((f"{name}_mean", pl.Float64, [each.mean for each in spreads]))
        columns.append((f"{name}_lo", pl.Float64, [clipped(objective, each.lo) for each in spreads]))
        columns.append((f"{name}_hi", pl.Float64, [clipped(objective, each.hi) for each in spreads]))
    return pl.DataFrame([series(*column) for column in columns])

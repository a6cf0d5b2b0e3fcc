"""Make the HTML page of a search."""

from collections.abc import Sequence

from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.config.strict import ConfigError
from mclab.plan.space_trials import Trials
from mclab.report.page.html import Block, Code, Files, Page, Plot, Section, Source, Table, Words, html
from mclab.report.page.settings import provenance, settings
from mclab.report.plot.svg import NARROW, WIDE, drawing
from mclab.report.sweeps.plots import figures_of
from mclab.report.sweeps.study import Study, how_to_read_study, metric_name, status_lines
from mclab.report.sweeps.tables import head, importance_columns, marginal_columns, trial_columns
from mclab.report.sweeps.trust import trust
from mclab.report.sweeps.write import importances_frame, marginals_frame, trials_frame, trials_shown
from mclab.report.table.export import as_csv
from mclab.report.text import seeds_text

ALT = {
    "importances": "Importance of every axis as a bar",
    "marginals": "Mean of the objective for each value of each axis, with every trial",
    "contour": "Mean of the objective over the two most important axes",
    "front": "Every trial by both objectives, and the front",
}
#: The largest number of best trials whose configurations are compared.
_MOST_BESIDE = 20


def sweep_page(found: Trials, records: Sequence[StoredRun], source: Source) -> bytes:
    """Return the HTML page with all results of a search. Raises `ConfigError` if no trial has ended yet."""
    if not any(trial.counts for trial in found.trials):
        raise ConfigError(f"{source.folder}: no trial is over yet, so there is nothing to report")
    study = Study(found)
    goals = " and ".join(f"{each.direction} {metric_name(each.metric)}" for each in found.objectives)
    kicker = f"search {found.study}: {goals}, seeds {seeds_text(found.seeds)}"
    answer = [*_best(study), *status_lines(study), *trust(study)]
    return html(Page(study.title, kicker, answer, _sections(study, records, source)))


def _best(study: Study) -> list[str]:
    if study.several or not study.found.done:
        return [f"{head(study)[0].upper()}{head(study)[1:]}."] if study.found.done else []
    columns = trial_columns(study)
    first = [f"{column.head} {column.texts[0]}" for column in columns if column.texts[0]]
    return [f"Best of {len(study.found.done)} distinct trials: {', '.join(first)}."]


def _sections(study: Study, records: Sequence[StoredRun], source: Source) -> list[Section]:
    weights, marginals = importance_columns(study), marginal_columns(study)
    best: list[Block] = [Table(head(study), trial_columns(study))] if study.found.done else []
    return [
        Section("best", "Best trials", best),
        Section("importances", "What matters", [Table("Importance of the axes", weights)] if weights else []),
        Section("marginals", "Value by value", [Table("Means by value", marginals, 2)] if marginals else []),
        Section("plots", "Plots", _plots(study)),
        Section("trials", "Every trial", [Table("Trials in order of number", trials_shown(study))]),
        Section("differences", "What the best trials are", _settings(study, records)),
        Section("provenance", "Provenance", [provenance(records, source, seeds_text(study.found.seeds))]),
        Section("repeat", "Repeat it", [Code(source.commands)]),
        Section("downloads", "Downloads", [Files(_files(study))]),
        Section("notes", "How to read it", [Words(how_to_read_study(study))]),
    ]


def _plots(study: Study) -> list[Block]:
    made: list[Block] = []
    for kind, draw in figures_of(study).items():
        alt = f"{ALT[kind]}. {study.title}"
        wide, narrow = (drawing(draw, f"{kind}{n}-", alt, each) for n, each in enumerate((WIDE, NARROW)))
        made.append(Plot(kind, alt, wide, narrow))
    return made


def _settings(study: Study, records: Sequence[StoredRun]) -> list[Block]:
    """Return blocks that compare the configurations of the best trials, as far as their runs are stored."""
    stored = {record.run_id: record.config for record in records}
    runs: dict[str, RunConfig] = {}
    for trial in study.found.best()[:_MOST_BESIDE]:
        config = next((known for run in trial.run_ids if (known := stored.get(run))), None)
        if config is not None:
            runs[f"trial {trial.number}"] = config
    return settings(runs) if runs else []


def _files(study: Study) -> dict[str, bytes]:
    files = {
        "trials.csv": as_csv(trials_frame(study)),
        "importances.csv": as_csv(importances_frame(study)),
        "marginals.csv": as_csv(marginals_frame(study)),
    }
    if study.several:
        files["front.csv"] = as_csv(trials_frame(study, study.found.front()))
    return files

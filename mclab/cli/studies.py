"""What table and plot do in the run folder of a sweep. Its trials are read; nothing of Optuna is imported."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.cli.streams import content, remark, result, result_json, width
from mclab.cli.texts import written

if TYPE_CHECKING:
    from mclab.plan.space_trials import Trials
    from mclab.report.plot.layout import Layout
    from mclab.report.sweeps.study import Study

#: What `table --format` prints, and the file that holds the same.
TABLES = {"text": None, "md": "sweep.md", "csv": "trials.csv", "parquet": "trials.parquet"}
#: What `plot --kind` draws.
KINDS = ("importances", "marginals", "contour", "front")


def table(found: "Trials", folder: Path, form: str, out: Path, as_json: bool) -> None:
    """Print the study in one form, write its tables below `out`. Raises `ConfigError`."""
    from mclab.config.strict import ConfigError
    from mclab.report.sweeps.write import write_tables
    from mclab.store.files import plainly

    if form not in TABLES:
        raise ConfigError(f"--format: {form} is for a grid; {folder} holds a sweep: {', '.join(TABLES)}")
    if as_json:
        from mclab.plan.space_trials import as_dict

        result_json(as_dict(found))
    elif (name := TABLES[form]) is not None:
        content(_file(found, name), name)
    else:
        from mclab.report.sweeps.tables import terminal_text

        result(terminal_text(found, width()).rstrip("\n"))
    with plainly(out / "tables"):
        paths = write_tables(found, out / "tables")
    remark(*written(paths))


def _file(found: "Trials", name: str) -> bytes:
    """One of the files that `write_tables` writes."""
    from mclab.report.sweeps.study import Study
    from mclab.report.sweeps.write import page, trials_frame
    from mclab.report.table.export import as_csv, as_parquet

    if name == "sweep.md":
        return page(Study(found)).encode()
    frame = trials_frame(Study(found))
    return as_csv(frame) if name == "trials.csv" else as_parquet(frame)


def plot(
    found: "Trials",
    folder: Path,
    kinds: Sequence[str],
    formats: Sequence[str],
    out: Path,
    look: "Layout",
    labels: Sequence[str],
) -> None:
    """Write the kinds that were asked for, by default all that have something to show. Raises `ConfigError`."""
    from mclab.config.strict import ConfigError
    from mclab.report.plot.kinds import drawn, with_labels
    from mclab.report.plot.layout import using_layout
    from mclab.report.sweeps.plots import figures_of
    from mclab.report.sweeps.study import Study
    from mclab.report.table.export import write_files
    from mclab.store.files import plainly

    if strange := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"--kind: {strange[0]} is for a grid; {folder} holds a sweep: {', '.join(KINDS)}")
    study = Study(found)
    figures: Mapping[str, Callable[[], Any]] = figures_of(study)
    kinds = kinds or tuple(figures) or KINDS
    if missing := [kind for kind in kinds if kind not in figures]:
        raise ConfigError(f"{folder}: {_why_not(missing[0], study)}")
    with using_layout(with_labels(look, labels, [figures[kind] for kind in kinds])):
        files = {f"{kind}.{form}": drawn(figures[kind], form) for kind in kinds for form in formats}
    with plainly(out / "plots"):
        paths = write_files(out / "plots", files)
    for path in paths:
        result(str(path))


def _why_not(kind: str, study: "Study") -> str:
    """Why there is nothing to draw."""
    if not study.found.done:
        return "no trial is done yet, so there is nothing to draw"
    return {
        "importances": "no importances are known: too few trials, or trials that are all alike",
        "contour": "a contour takes two axes of which two values were seen",
        "front": f"a front takes two objectives, and the study has {study.found.objectives[0].metric} alone",
    }[kind]

"""`mclab plot`: draw the plots of a run folder of a grid or a search into files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.config.strict import ConfigError
from mclab.plan.plan import Plan
from mclab.plan.space_trials import Trials
from mclab.store import Records
from mclab.store.files import plainly

if TYPE_CHECKING:
    from mclab.report.plot.layout import Layout
    from mclab.report.sweeps.study import Study


def write_plots(plan: Plan, records: Records, out: Path) -> list[Path]:
    """Draw the default plots of a grid into `out`/plots, and return the files.

    Raises `ConfigError` if they cannot be written.
    """
    from mclab.report.plot import kinds

    with plainly(out / "plots"):
        return kinds.write_plots(plan, records.lookup, out / "plots", curve=records.curve)


def draw_grid(
    plan: Plan,
    records: Records,
    out: Path,
    formats: Sequence[str],
    kinds: Sequence[str],
    layout: "Layout",
    labels: Sequence[str],
    say: Callable[[str], None],
) -> list[Path]:
    """Draw a grid's plots of the kinds in `kinds` (by default those that fit it) into `out`/plots; return the files.

    `say` gets a line that names the kinds that cannot be drawn. Raises `ConfigError` where none of `kinds` can, where
    no run has a result yet, and where a file cannot be written.
    """
    from mclab.report.plot.kinds import refuse_empty, write_plots

    refuse_empty(plan, records.lookup)
    with plainly(out / "plots"):
        return write_plots(plan, records.lookup, out / "plots", formats, kinds, records.curve, layout, labels, say)


def draw_sweep(
    found: Trials,
    folder: Path,
    out: Path,
    formats: Sequence[str],
    kinds: Sequence[str],
    layout: "Layout",
    labels: Sequence[str],
    say: Callable[[str], None],
) -> list[Path]:
    """Draw a search's plots of the kinds in `kinds` (by default all possible ones) into `out`/plots; return the files.

    `folder` is the run folder, for messages. `say` gets a line that names the kinds that cannot be drawn. Raises
    `ConfigError` where none can be drawn, and where a file cannot be written.
    """
    from mclab.report.plot.kinds import drawn, with_labels
    from mclab.report.plot.layout import using_layout
    from mclab.report.sweeps.plots import figures_of
    from mclab.report.sweeps.study import Study
    from mclab.report.table.export import write_files

    study = Study(found)
    figures: Mapping[str, Callable[[], Any]] = figures_of(study)
    if not kinds and not figures:
        raise ConfigError(f"{folder}: {_why_not('importances', study)}")
    kinds = kinds or tuple(figures)
    if missing := [kind for kind in kinds if kind not in figures]:
        reasons = dict.fromkeys(_why_not(kind, study) for kind in missing)
        if len(missing) == len(kinds):
            raise ConfigError(*(f"{folder}: {reason}" for reason in reasons))
        say(f"{folder}: not drawn: {', '.join(missing)} ({'; '.join(reasons)})")
        kinds = [kind for kind in kinds if kind in figures]
    with using_layout(with_labels(layout, labels, [figures[kind] for kind in kinds])):
        files = {f"{kind}.{form}": drawn(figures[kind], form) for kind in kinds for form in formats}
    with plainly(out / "plots"):
        return write_files(out / "plots", files)


def _why_not(kind: str, study: "Study") -> str:
    """Return in words why a plot of this kind cannot be drawn for the study."""
    if not study.found.done:
        return "no trial is done yet, so there is nothing to draw"
    return {
        "importances": "importances are not known: there are too few trials, or all trials are alike",
        "contour": "a contour needs two axes, each with at least two values in the trials",
        "front": f"a front needs two objectives, but the study has {study.found.objectives[0].metric} alone",
    }[kind]

"""Make the tables of a study (best trials or Pareto front, importances, marginals), and the last lines of a command."""

from collections.abc import Iterator, Sequence
from textwrap import fill

from mclab.config.strict import Scalar
from mclab.plan.comparable import meaningless
from mclab.plan.space_trials import Objective, Trial, Trials
from mclab.report.stats import Spread
from mclab.report.sweeps.levels import number_text
from mclab.report.sweeps.study import Ranked, Study, clipped, metric_name, metric_text, status_lines
from mclab.report.sweeps.trust import trust
from mclab.report.table.columns import Shown
from mclab.report.table.grids import fit, text_grid
from mclab.report.text import NOTHING, value_text

#: The most rows in the table of the best trials.
MOST_BEST = 10
#: Further metrics; they are shown in this order until the width is used up.
_REST = ("params", "state_floats", "tokens_per_s", "valid.accuracy", "valid.loss")


def chosen(study: Study) -> tuple[Trial, ...]:
    """Return the trials to show: the Pareto front if there are two objectives, else the best trials."""
    return study.found.front() if study.several else study.found.best()[:MOST_BEST]


def trial_columns(study: Study) -> list[Shown]:
    """Return the columns of the chosen trials: number, axes, objectives, accuracy on test, further metrics."""
    rows = chosen(study)
    columns = [Shown("trial", tuple(str(trial.number) for trial in rows))]
    for each in study.ranked:
        columns.append(Shown(each.name, tuple(_value(each, trial) for trial in rows), right=False))
    asked = [objective.metric for objective in study.found.objectives]
    columns += [_metric(rows, metric) for metric in asked]
    if "test.accuracy" not in asked:
        columns.append(_metric(rows, "test.accuracy"))
    rest = [metric for metric in _REST if metric not in asked and any(metric in trial.metrics for trial in rows)]
    return [*columns, *(_metric(rows, metric, place) for place, metric in enumerate(rest, 1))]


def _value(each: Ranked, trial: Trial) -> str:
    if each.axis.path not in trial.params or each.axis.path in trial.inert:
        return NOTHING
    return shown_value(trial.params[each.axis.path])


def shown_value(value: Scalar) -> str:
    """Return a value as an author of a space would write it; a float has three significant digits."""
    return number_text(value) if isinstance(value, float) else value_text(value)


def _metric(rows: Sequence[Trial], metric: str, expendable: int = 0) -> Shown:
    texts = [NOTHING if (v := trial.metrics.get(metric)) is None else metric_text(metric, v) for trial in rows]
    return Shown(metric_name(metric), tuple(texts), expendable=expendable)


def importance_columns(study: Study) -> list[Shown]:
    """Return the columns of the importances, with a row for each axis; empty if no importance is known."""
    if not study.weighed:
        return []
    columns = [Shown("axis", tuple(each.name for each in study.ranked), right=False)]
    for place, objective in enumerate(study.found.objectives):
        texts = [NOTHING if (s := each.shares[place]) is None else f"{s:.3f}" for each in study.ranked]
        head = f"importance for {metric_name(objective.metric)}" if study.several else "importance"
        columns.append(Shown(head, tuple(texts)))
        columns += _interval_columns(study, place)
    return columns


def _interval_columns(study: Study, place: int) -> Iterator[Shown]:
    """Yield the intervals of the importances for one objective, and Optuna's default importances if these differ."""
    doubts = [each.doubt[place] if each.doubt else None for each in study.ranked]
    if any(doubts):
        ranges = [NOTHING if doubt is None else f"[{doubt.lo:.2f}, {doubt.hi:.2f}]" for doubt in doubts]
        yield Shown("95 % interval", tuple(ranges))
        yield Shown("first in", tuple(NOTHING if doubt is None else f"{doubt.first:.0%}" for doubt in doubts))
    others = [each.other[place] if each.other else None for each in study.ranked]
    if any(share is not None for share in others):
        texts = [NOTHING if share is None else f"{share:.3f}" for share in others]
        yield Shown("Optuna's default", tuple(texts))


def marginal_columns(study: Study) -> list[Shown]:
    """Return the columns of the marginals: axis, value, number of trials, mean, interval.

    Each level of an axis has a row.
    """
    rows = [(each, level) for each in study.ranked for level in each.levels]
    if not study.judged.trials:
        return []
    columns = [
        Shown("axis", tuple(each.name for each, _ in rows), right=False),
        Shown("value", tuple(level.label for _, level in rows), right=False),
        Shown("trials", tuple(str(len(level.trials)) for _, level in rows)),
    ]
    for place, objective in enumerate(study.found.objectives):
        spreads = [level.objective(place) for _, level in rows]
        columns.append(Shown(study.measured(objective), tuple(_mean(objective, s) for s in spreads)))
        columns.append(Shown("95 % interval", tuple(_interval(objective, s) for s in spreads)))
    if any(level.pruned for _, level in rows):
        columns.insert(3, Shown("pruned", tuple(str(level.pruned) for _, level in rows)))
    if any(level.lost for _, level in rows):
        head = "not done" if study.judged.step is None else "lost"
        columns.append(Shown(head, tuple(str(level.lost) for _, level in rows)))
    return columns


def _mean(objective: Objective, found: Spread) -> str:
    return NOTHING if found.mean is None else metric_text(objective.metric, found.mean)


def _interval(objective: Objective, found: Spread) -> str:
    low, high = clipped(objective, found.lo), clipped(objective, found.hi)
    if low is None or high is None:
        return NOTHING
    return f"[{metric_text(objective.metric, low)}, {metric_text(objective.metric, high)}]"


def terminal_text(found: Trials, width: int = 120, confirm: str | None = None) -> str:
    """Return title, best trials or Pareto front, importances, and what is unusual.

    Columns that do not fit `width` are left out. `confirm` is the command that confirms the best point; it is shown if
    some trial is done.
    """
    study = Study(found)
    parts = [fill(study.title, width, subsequent_indent="  ")]
    if found.done:
        every = trial_columns(study)
        columns = fit(every, width)
        left = [column.head for column in every if column not in columns]
        parts += [head(study), text_grid(columns)]
        parts += [f"hidden columns: {', '.join(left)}; see sweep.md"] * bool(left)
    if weights := importance_columns(study):
        parts.append(text_grid(weights))
    parts.append("\n".join(fill(line, width, subsequent_indent="  ") for line in (*status_lines(study), *trust(study))))
    if confirm and len(found.done) > 1 and not meaningless(found):
        parts.append(f"a search proposes, an ablation decides: {confirm}")
    return "\n\n".join(parts) + "\n"


def head(study: Study) -> str:
    """Return the title of the table of trials. It names the Pareto front, or the best trials and the metric."""
    first = study.found.objectives[0]
    if study.several:
        second = study.found.objectives[1]
        ways = [f"{each.direction} {metric_name(each.metric)}" for each in (first, second)]
        return f"the front: {' and '.join(ways)}, {len(study.found.front())} of {len(study.found.done)} distinct trials"
    shown = min(MOST_BEST, len(study.found.done))
    way = "highest" if first.direction == "maximize" else "lowest"
    return f"the {shown} best of {len(study.found.done)} distinct trials, {way} {metric_name(first.metric)} first"

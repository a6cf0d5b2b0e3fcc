"""A study as plain text for the end of a command."""

from textwrap import fill

from mclab.plan.comparable import meaningless
from mclab.plan.space_trials import Trials
from mclab.report.sweeps.columns import MOST_BEST, importance_columns, trial_columns
from mclab.report.sweeps.study import Study, metric_name, told
from mclab.report.sweeps.trust import trust
from mclab.report.terminal import fit, grid


def terminal_text(found: Trials, width: int = 120, confirm: str | None = None) -> str:
    """Question, best trials or front, importances, what is unusual. A narrow terminal leaves lesser columns out.

    `confirm` is the command that has the best point confirmed; it is told where there is one to confirm.
    """
    study = Study(found)
    parts = [fill(study.title, width, subsequent_indent="  ")]
    if found.done:
        every = trial_columns(study)
        columns = fit(every, width)
        left = [column.head for column in every if column not in columns]
        parts += [head(study), grid(columns)]
        parts += [f"left out for width: {', '.join(left)}; see sweep.md"] * bool(left)
    if weights := importance_columns(study):
        parts.append(grid(weights))
    parts.append("\n".join(fill(line, width, subsequent_indent="  ") for line in (*told(study), *trust(study))))
    if confirm and len(found.done) > 1 and not meaningless(found):
        parts.append(f"a search proposes, an ablation decides: {confirm}")
    return "\n\n".join(parts) + "\n"


def head(study: Study) -> str:
    """What the table of trials is."""
    first = study.found.objectives[0]
    if study.several:
        second = study.found.objectives[1]
        ways = [f"{each.direction} {metric_name(each.metric)}" for each in (first, second)]
        return f"the front: {' and '.join(ways)}, {len(study.found.front())} of {len(study.found.done)} distinct trials"
    shown = min(MOST_BEST, len(study.found.done))
    way = "highest" if first.direction == "maximize" else "lowest"
    return f"the {shown} best of {len(study.found.done)} distinct trials, {way} {metric_name(first.metric)} first"

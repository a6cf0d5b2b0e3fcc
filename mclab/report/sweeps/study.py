"""Prepare a study for its reports: names of columns, axes by importance, levels, and what is unusual."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mclab.plan.comparable import Comparable, comparable, meaningless
from mclab.plan.space_trials import COUNTED, Objective, Resampled, SpaceAxis, Trial, Trials
from mclab.report.sweeps.levels import Level, levels_of
from mclab.report.text import column_names, listed, reason, seeds_text

#: A number is at an edge if its distance from an end of its range is less than this fraction of the range.
EDGE = 0.05
#: The most problems of one kind that are listed; further ones are only counted.
MOST_TOLD = 4
PED_ANOVA = (
    "Importance: PED-ANOVA (arXiv 2304.10255), how differently the best tenth of the trials (at least five, at most "
    "half) lie along an axis than all of them or, where points were drawn at random, than the space; shares of 1. It "
    "says what matters where it is good, not which value is good."
)


BEST_THIRD = (
    "Importance: PED-ANOVA (arXiv 2304.10255), how differently the best third of the trials (at least five) lie along "
    "an axis than all of them or, where points were drawn at random, than the space, less what shuffled values give; "
    "shares of 1, with the middle 95 % of bootstrap resamples, and how often an axis comes first in them. It says what "
    "matters where it is good, not which value is good; a search proposes, an ablation decides."
)


@dataclass(frozen=True)
class Ranked:
    """An axis with its name in tables, its levels and its importances.

    For each objective, `shares` holds the importance, `doubt` the interval of the importance over resamples, and
    `other` the importance by Optuna's default estimator if that differs; `None` stands for what is not known.
    """

    axis: SpaceAxis
    name: str
    levels: tuple[Level, ...]
    shares: tuple[float | None, ...]
    doubt: tuple[Resampled | None, ...] = ()
    other: tuple[float | None, ...] = ()

    @property
    def filled(self) -> int:
        """The number of levels of the axis that have a trial with a result."""
        return sum(bool(level.trials) for level in self.levels if level.there)


@dataclass(frozen=True)
class Study:
    """A study with what its tables, sentences and figures have in common."""

    found: Trials

    @property
    def title(self) -> str:
        """The title of the reports: the question of the study, or its name if it has none."""
        return self.found.question or self.found.study

    @cached_property
    def judged(self) -> Comparable:
        """The trials on which importances, marginals and contour are based, and the step at which they are compared."""
        return comparable(self.found)

    def measured(self, objective: Objective) -> str:
        """Return an objective's name with the step at which trials are compared, e.g. `valid accuracy at step 300`."""
        at = "" if self.judged.step is None else f" at step {self.judged.step}"
        return f"{metric_name(objective.metric)}{at}"

    @property
    def rests_on(self) -> str:
        """A sentence on how many trials the importances are based on, and at which step."""
        judged = self.judged
        if judged.step is None:
            return f"{len(judged.trials)} distinct trials."
        return f"{len(judged.trials)} distinct trials at step {judged.step}, {judged.pruned} of them pruned."

    @property
    def method(self) -> str:
        """Sentences on how the importances were computed."""
        return PED_ANOVA if self.found.good is None else BEST_THIRD

    @cached_property
    def names(self) -> dict[str, str]:
        """The column name of each axis, by the path of the axis."""
        return column_names([axis.path for axis in self.found.axes])

    @cached_property
    def ranked(self) -> tuple[Ranked, ...]:
        """The axes by importance for the first objective, the largest first; an unknown importance counts as 0."""
        axes = [
            Ranked(
                axis,
                self.names[axis.path],
                levels_of(self.found, axis),
                tuple(self._shares(axis)),
                tuple(self.found.resampled.get(each.metric, {}).get(axis.path) for each in self.found.objectives),
                tuple(self.found.other.get(each.metric, {}).get(axis.path) for each in self.found.objectives),
            )
            for axis in self.found.axes
        ]
        return tuple(sorted(axes, key=lambda each: -(each.shares[0] or 0.0)))

    def _shares(self, axis: SpaceAxis) -> Iterator[float | None]:
        for objective in self.found.objectives:
            value = self.found.importances.get(objective.metric, {}).get(axis.path)
            yield value if value is not None and math.isfinite(value) else None

    @property
    def weighed(self) -> bool:
        """True if some importance is known and not 0."""
        return any(value for each in self.ranked for value in each.shares)

    @property
    def several(self) -> bool:
        """True if there are two objectives, so that tables show a Pareto front and not the best trials."""
        return len(self.found.objectives) > 1

    def constant(self, place: int) -> bool:
        """Return whether all finished trials have the same value of objective number `place`."""
        return len({trial.values[place] for trial in self.found.done if trial.values}) < 2


def metric_name(metric: str) -> str:
    """Return the name of a metric in texts, e.g. `valid accuracy` for valid.accuracy and `state` for state_floats."""
    return {"state_floats": "state", "tokens_per_s": "tokens/s"}.get(metric, metric.replace(".", " ").replace("_", " "))


def metric_text(metric: str, value: float) -> str:
    """Return the value as text: an accuracy or a loss with three decimals, other metrics as whole numbers."""
    return f"{value:.3f}" if metric.endswith(("accuracy", "loss")) else f"{value:,.0f}"


def clipped(objective: Objective, value: float | None) -> float | None:
    """Return the end of an interval as shown: an accuracy is clipped to [0, 1], other metrics to at least 0."""
    if value is None:
        return None
    return min(1.0 if objective.metric.endswith("accuracy") else value, max(0.0, value))


def status_lines(study: Study) -> list[str]:
    """Return sentences on the trials: counts by status, what cannot be concluded, values at an edge, failed trials."""
    return [_counts(study), *_nothing(study), *_edges(study), *_troubles(study)]


def _counts(study: Study) -> str:
    found = study.found
    counts = Counter(trial.status for trial in found.trials)
    over = sum(counts[status] for status in COUNTED)
    parts = ", ".join(f"{number} {status}" for status, number in sorted(counts.items(), key=lambda each: -each[1]))
    repeats = counts["done"] - len(found.done)
    same = f"; {repeats} of those done repeat a point that was measured before" if repeats else ""
    far = f"{over} of {found.asked} trials" if over <= found.asked else f"{over} trials ({found.asked} asked for)"
    return f"{far}: {parts or 'none yet'}{same}."


def _nothing(study: Study) -> Iterator[str]:
    """Yield sentences on what cannot be concluded from the trials, and why."""
    done = len(study.found.done)
    if not done:
        yield "No trial is done, so there is nothing to rank."
        return
    for place, objective in enumerate(study.found.objectives):
        if done > 1 and study.constant(place):
            yield f"{metric_name(objective.metric)} is the same in every trial, so no axis can matter for it."
    if not study.weighed and not meaningless(study.found):
        yield "Importances are not known: there are too few trials, or all trials are alike."
    single = [each.name for each in study.ranked if each.filled < 2]
    if single and done > 1:
        yield f"Nothing is known of axes that had one value only: {listed(single)}."


def _edges(study: Study) -> Iterator[str]:
    """Yield a sentence that names the axes on which the best trial is near an end of the range (`EDGE`)."""
    best = study.found.best()
    if study.several or len(best) < 2:
        return
    at = [name for each in study.ranked if (name := each.name) and _at_edge(each.axis, best[0])]
    if at:
        be = "are" if len(at) > 1 else "is"
        yield f"In the best trial {listed(at)} {be} at an end of the range: a better value may be beyond it."


def _at_edge(axis: SpaceAxis, trial: Trial) -> bool:
    if axis.kind == "choice" or axis.path not in trial.params or axis.path in trial.inert or axis.low == axis.high:
        return False
    where = axis.share(float(trial.params[axis.path]))  # type: ignore[arg-type]
    return min(where, 1 - where) < EDGE


def _troubles(study: Study) -> Iterator[str]:
    refused = Counter(_reason(trial) for trial in study.found.trials if trial.status == "refused")
    for why, number in refused.most_common(MOST_TOLD):
        what = "points were left out because their keys" if number > 1 else "point was left out because its keys"
        yield f"{number} {what} contradict each other{why}."
    for status in ("diverged", "oom", "failed"):
        bad = [trial for trial in study.found.trials if trial.status == status]
        for trial in bad[:MOST_TOLD]:
            yield f"Trial {trial.number}: {status}{_reason(trial)}."
        if len(bad) > MOST_TOLD:
            yield f"{len(bad) - MOST_TOLD} more trials: {status}; see trials.csv."


def _reason(trial: Trial) -> str:
    if trial.diverged_step is not None:
        return f" at step {trial.diverged_step}"
    return reason(str(trial.error or ""))


def how_to_read_study(study: Study) -> list[str]:
    """Return sentences on how to read the tables and plots."""
    found = study.found
    seeds = f"means over seeds {seeds_text(found.seeds)}" if len(found.seeds) > 1 else f"of seed {found.seeds[0]} alone"
    lines = [
        f"A trial's figures are {seeds}. Trials are chosen on valid; the best of many is partly the best on valid by "
    ]
    lines[0] += "chance, which does not affect its result on test."
    if study.weighed:
        lines.append(study.method)
    lost = "Not done: trials that were pruned, diverged or failed there; they are in no mean."
    if study.judged.step is not None:
        lost = "Pruned: of those trials, stopped at that step or later. Lost: stopped before it, diverged or failed."
    lines.append(
        "Marginal: mean over the trials with that value, with its 95 % t interval, whatever their other axes are; a "
        "search looks more often where it is good, so only trials drawn at random make this an average over the space. "
        f"–: the axis does not exist there or changes nothing. {lost}"
    )
    if study.several:
        lines.append("Front: no other trial is better in one objective and at least as good in the other.")
    return lines

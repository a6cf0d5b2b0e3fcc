"""Choose the trials from which a study's axes are judged: all distinct ones, at a step that nearly all have reached.

Pruned trials are included, since each was worse than half of the others when it was stopped. If only trials that ran to
their end were compared, a value that always led to an early stop would not seem to matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mclab.plan.space_trials import Trial, Trials

#: The share of the distinct trials that must have reached a step before all are compared there.
MOST = 0.9
#: A run has begun to recall if its accuracy on valid exceeds the best predictor without recall by this much. That is
#: five times the standard error of 1,000 answers at 0.12, so that not even the luckiest of a hundred trials at chance
#: reaches it.
BEGUN = 0.05
#: The fewest good trials on which a statement may be based (Optuna's advice for PED-ANOVA).
FEWEST_GOOD = 5

Looks = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class Comparable:
    """Distinct trials, where the `values` of each are the value at which trials are compared.

    `step` is the step at which the values were measured. If it is `None`, they are those at the end of training,
    without pruned trials: no trial was pruned, no evaluation of the pruned ones is known, or there are two objectives.
    `left` is the number of trials that had not reached the step.
    """

    step: int | None
    trials: tuple[Trial, ...]
    left: int

    @property
    def pruned(self) -> int:
        """The number of trials that were pruned after `step`."""
        return sum(trial.status == "pruned" for trial in self.trials)


def comparable(found: Trials) -> Comparable:
    """Return all distinct trials that are done or pruned, compared at the last step that the share `MOST` of them has
    reached.

    If so many reached no step, take the step that most trials have reached. Evaluations during training are of the
    first objective, so with two objectives only the trials that are done are compared.
    """
    ended = _distinct(found.trials)
    pruned = [trial for trial in ended if trial.status == "pruned"]
    step = None if len(found.objectives) > 1 or not pruned else _step(ended, found.looks)
    if step is None:
        return Comparable(None, tuple(trial for trial in ended if trial.status == "done"), len(pruned))
    there = [trial for trial in ended if step in found.looks.get(trial.number, {})]
    judged = tuple(replace(trial, values=(found.looks[trial.number][step],)) for trial in there)
    return Comparable(step, judged, len(ended) - len(there))


def _distinct(trials: Sequence[Trial]) -> list[Trial]:
    """Return one trial for each set of runs, the one that measured them, sorted by number."""
    first: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(trials, key=lambda trial: trial.repeat_of is not None):
        if trial.status == "pruned" or (trial.status == "done" and trial.values is not None):
            first.setdefault(trial.run_ids, trial)
    return sorted(first.values(), key=lambda trial: trial.number)


def _step(trials: Sequence[Trial], looks: Looks) -> int | None:
    """Return the last step that enough trials have reached; `None` if no evaluation of a pruned trial is known."""
    if not any(looks.get(trial.number) for trial in trials if trial.status == "pruned"):
        return None
    came = dict[int, int]()
    for trial in trials:
        for step in looks.get(trial.number, {}):
            came[step] = came.get(step, 0) + 1
    enough = [step for step, number in came.items() if number >= MOST * len(trials)]
    return max(enough) if enough else max(came, key=lambda step: (came[step], step))


def begun(found: Trials) -> tuple[int, int] | None:
    """Return how many of the comparable trials have begun to recall, and for how many trials this is known.

    `None` if it is known for none: the objective is a loss, or the records do not hold the baseline without recall.
    """
    judged = comparable(found)
    if found.without_recall is None:
        return None
    if judged.step is None:
        values = [trial.metrics["valid.accuracy"] for trial in judged.trials if "valid.accuracy" in trial.metrics]
    elif found.objectives[0].metric == "valid.accuracy":
        values = [trial.values[0] for trial in judged.trials if trial.values]
    else:
        return None
    return sum(recalls(value, found.without_recall) for value in values), len(values)


def recalls(accuracy: float, without_recall: float) -> bool:
    """Return whether an accuracy on valid exceeds the accuracy without recall by more than chance explains."""
    return accuracy > without_recall + BEGUN


def meaningless(found: Trials) -> bool:
    """Return whether so few trials have begun to recall that the best ones may be best by chance."""
    known = begun(found)
    return known is not None and known[0] < min(FEWEST_GOOD, known[1])

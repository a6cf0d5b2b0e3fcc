"""Choose the trials by which a study's axes are judged: all distinct ones, at a step that nearly all have reached.

Pruned trials are included, since each was worse than half of the others when it was stopped. If only the trials that
ran to their end were compared, a value that always led to an early stop would not seem to matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mclab.plan.space_trials import Trial, Trials

#: Share of the distinct trials that must have reached a step for all to be compared there.
MOST = 0.9
#: A run has begun to recall if its accuracy on valid is this much above the best predictor without recall. This is five
#: times the standard error of 1,000 answers at 0.12, so that the luckiest of a hundred trials at chance does not reach
#: it.
BEGUN = 0.05
#: Fewest good trials that a statement may rest on (Optuna's advice for PED-ANOVA).
FEWEST_GOOD = 5

Looks = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class Comparable:
    """Distinct trials. The `values` of each are replaced by the value by which it is judged.

    `step` is the step at which the values were measured. `None` is the end of training; then pruned trials are left
    out. That is so if no trial was pruned, if nothing is known of the pruned ones, or if there are two objectives.
    `left` is the number of trials that had not reached the step.
    """

    step: int | None
    trials: tuple[Trial, ...]
    left: int

    @property
    def pruned(self) -> int:
        """How many of the trials were pruned later."""
        return sum(trial.status == "pruned" for trial in self.trials)


def comparable(found: Trials) -> Comparable:
    """Return all distinct trials that are done or pruned, at the last step that the share `MOST` of them has reached.

    If no step was reached by so many, it is the step that most trials have reached. Evaluations during training are of
    the first objective, so with two objectives only the trials that are done are compared.
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
    """Return one trial for each set of runs, the one that measured them; in order of number."""
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
    """Return how many of the comparable trials have begun to recall, and of how many trials that is known.

    `None` if it is not known of any: the objective is a loss, or the records are older than the stored baselines.
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
    """Return whether an accuracy on valid is above the score without recall by more than chance explains."""
    return accuracy > without_recall + BEGUN


def meaningless(found: Trials) -> bool:
    """Return whether so few trials have begun to recall that the good ones may be good by luck."""
    known = begun(found)
    return known is not None and known[0] < min(FEWEST_GOOD, known[1])

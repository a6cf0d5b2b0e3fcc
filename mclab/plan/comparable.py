"""The trials that a study's axes are judged by: every distinct one, at a step that nearly all of them have reached.

Pruned trials are included: each was worse than half of the others when it was stopped. With only the trials that ran to
their end, a value that always led to an early stop would not seem to matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mclab.plan.space_trials import Trial, Trials

#: Share of the distinct trials that must have reached a step for all to be compared there.
MOST = 0.9
#: How far above the best predictor without recall a valid accuracy shows that a run has begun to recall: five times the
#: standard error of 1,000 answers at 0.12, so that the luckiest of a hundred trials at chance does not.
BEGUN = 0.05
#: Fewest good trials that a statement may rest on (Optuna's advice for PED-ANOVA).
FEWEST_GOOD = 5

Looks = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class Comparable:
    """Distinct trials with the value that each is judged by in place of its own `values`.

    `step` is where the values were measured: `None` for the end of training, where no trial was pruned or nothing is
    known of those that were; then pruned trials are left out. `left` are trials that had not come so far.
    """

    step: int | None
    trials: tuple[Trial, ...]
    left: int

    @property
    def pruned(self) -> int:
        """How many of the trials were pruned later."""
        return sum(trial.status == "pruned" for trial in self.trials)


def comparable(found: Trials) -> Comparable:
    """All distinct trials that are done or pruned, at the last step that at least `MOST` of them have come to.

    Looks are of the first objective; with two, only the trials that are done are compared. Where `MOST` share no step,
    it is the step that most trials have come to.
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
    """Of each set of runs the trial that measured them, in order of number."""
    first: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(trials, key=lambda trial: trial.repeat_of is not None):
        if trial.status == "pruned" or (trial.status == "done" and trial.values is not None):
            first.setdefault(trial.run_ids, trial)
    return sorted(first.values(), key=lambda trial: trial.number)


def _step(trials: Sequence[Trial], looks: Looks) -> int | None:
    """The last step with enough trials; `None` where no look at all is known of a pruned one."""
    if not any(looks.get(trial.number) for trial in trials if trial.status == "pruned"):
        return None
    came = dict[int, int]()
    for trial in trials:
        for step in looks.get(trial.number, {}):
            came[step] = came.get(step, 0) + 1
    enough = [step for step, number in came.items() if number >= MOST * len(trials)]
    return max(enough) if enough else max(came, key=lambda step: (came[step], step))


def begun(found: Trials) -> tuple[int, int] | None:
    """How many of the trials that are judged recall more than the best predictor without recall, and of how many it is
    known. `None` where it is of none: the objective is a loss, or the records are from before baselines were stored."""
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
    """Whether an accuracy on valid is above what is had without recall by more than chance gives."""
    return accuracy > without_recall + BEGUN


def meaningless(found: Trials) -> bool:
    """Whether too few trials have begun to recall for what is good among them to be more than luck."""
    known = begun(found)
    return known is not None and known[0] < min(FEWEST_GOOD, known[1])

"""The attributes that mclab writes to a study and its trials, and the conversion of Optuna's trials to ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mclab.plan.space_trials import COUNTED, Status, Trial, trial_from

#: Attributes of a study: a description of the space, and the prefix of the number by which a process shows that it
#: lives.
SPACE, BEAT = "mclab:space", "mclab:beat:"
#: Attributes of a trial: the accuracy without recall, and the step at which the trial began to be better than that.
WITHOUT, BEGUN = "without_recall", "begun"
#: The statuses that the same runs would have again.
FINAL: tuple[Status, ...] = ("done", "pruned", "diverged")
#: Attributes of a trial in the study that have the same name in `Trial`.
_FIELDS = ("inert", "run_ids", "repeat_of", "retry_of", "diverged_step", "error", "duration_s", "sampler")
STATES: dict[Status, TrialState] = {
    "done": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "refused": TrialState.PRUNED,
}


@dataclass(frozen=True)
class Seen:
    """All trials, with their evaluations on valid and the accuracy of the best predictor without recall.

    `looks` maps a trial's number and a step to the first objective. `without_recall` is one number, since all trials
    are tested on the same sequences.
    """

    trials: tuple[Trial, ...]
    looks: dict[int, dict[int, float]]
    without_recall: float | None


def status(trial: FrozenTrial) -> Status:
    """Return mclab's status of a trial; if another program ended the trial, the status follows from Optuna's state."""
    if trial.state == TrialState.RUNNING:
        return "running"
    if trial.state == TrialState.WAITING:
        return "waiting"
    if trial.state == TrialState.COMPLETE:
        return "done"
    usual: Status = "pruned" if trial.state == TrialState.PRUNED else "failed"
    found: Status = trial.user_attrs.get("status", usual)
    return found


def retried(trials: Sequence[FrozenTrial]) -> set[int]:
    """Return the numbers of the trials whose parameters another trial has taken over."""
    return {trial.user_attrs["retry_of"] for trial in trials if "retry_of" in trial.user_attrs}


def counted(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the finished trials that count towards the number that was asked for."""
    gone = retried(trials)
    return [trial for trial in trials if status(trial) in COUNTED and trial.number not in gone]


def twin(run_ids: Sequence[str], trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """Return the first trial that has measured the same runs; `None` if there is none."""
    for trial in trials:
        attrs = trial.user_attrs
        if attrs.get("run_ids") == list(run_ids) and status(trial) in FINAL and "repeat_of" not in attrs:
            return trial
    return None


def ours(trial: FrozenTrial, gone: set[int]) -> Trial:
    """Return the trial in the form that reports use. A failed trial in `gone` gets the status `lost`.

    `gone` are the numbers of trials whose parameters another trial has taken over. Raises `ConfigError` if the trial
    holds something that mclab does not write.
    """
    attrs: dict[str, Any] = trial.user_attrs
    ended = status(trial)
    if ended == "failed" and trial.number in gone:
        ended = "lost"
    values: dict[str, Any] = {name: attrs[name] for name in _FIELDS if name in attrs}
    values |= {"number": trial.number, "status": ended, "params": dict(trial.params)}
    if ended == "done":
        values["values"] = trial.values
        values["metrics"] = attrs.get("metrics", {})
    return trial_from(values, f"trial {trial.number} of the study")


def seen_of(trials: Sequence[FrozenTrial]) -> Seen:
    """Return all trials in the form that reports use.

    Raises `ConfigError` if one holds something that mclab does not write.
    """
    gone = retried(trials)
    known = [value for trial in trials if isinstance(value := trial.user_attrs.get(WITHOUT), int | float)]
    looks = {trial.number: _numbers(trial.intermediate_values) for trial in trials if trial.intermediate_values}
    return Seen(tuple(ours(trial, gone) for trial in trials), looks, max(known, default=None))


def _numbers(looks: Mapping[int, float]) -> dict[int, float]:
    return {step: value for step, value in sorted(looks.items()) if isfinite(value)}

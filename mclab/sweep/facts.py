"""What mclab writes beside a trial in the study, and a trial of Optuna's as a trial of ours."""

from collections.abc import Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mclab.plan.space_trials import COUNTED, Status, Trial

#: The attribute of a study that says what is searched, and the one under which a process counts up.
SPACE, BEAT = "mclab:space", "mclab:beat:"
#: Statuses that the same runs would have again.
FINAL: tuple[Status, ...] = ("done", "pruned", "diverged")
STATES: dict[Status, TrialState] = {
    "done": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "refused": TrialState.PRUNED,
}


def status(trial: FrozenTrial) -> Status:
    """How a trial ended, in our words; Optuna's where somebody else ended it."""
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
    """Numbers of the trials whose parameters another took over."""
    return {trial.user_attrs["retry_of"] for trial in trials if "retry_of" in trial.user_attrs}


def counted(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that are over and count towards the number that was asked for."""
    gone = retried(trials)
    return [trial for trial in trials if status(trial) in COUNTED and trial.number not in gone]


def twin(run_ids: Sequence[str], trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """The first trial that has measured the same runs."""
    for trial in trials:
        attrs = trial.user_attrs
        if attrs.get("run_ids") == list(run_ids) and status(trial) in FINAL and "repeat_of" not in attrs:
            return trial
    return None


def ours(trial: FrozenTrial, gone: set[int]) -> Trial:
    """The trial as reports see it."""
    attrs: dict[str, Any] = trial.user_attrs
    ended = status(trial)
    if ended == "failed" and trial.number in gone:
        ended = "lost"
    return Trial(
        number=trial.number,
        status=ended,
        params=dict(trial.params),
        values=tuple(trial.values) if ended == "done" and trial.values is not None else None,
        metrics=dict(attrs.get("metrics", {})) if ended == "done" else {},
        inert=tuple(attrs.get("inert", ())),
        run_ids=tuple(attrs.get("run_ids", ())),
        repeat_of=attrs.get("repeat_of"),
        retry_of=attrs.get("retry_of"),
        diverged_step=attrs.get("diverged_step"),
        error=attrs.get("error"),
        duration_s=attrs.get("duration_s"),
        sampler=attrs.get("sampler"),
    )

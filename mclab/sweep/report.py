"""Report what one command did in a search: trials by status, written files, exit code; as text and as data."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mclab.config.keys import shown
from mclab.plan.space_trials import Status, Trials, as_dict
from mclab.sweep.study import Claim, End

#: Exit codes: all trials done; a file could not be written; a trial failed, diverged or is missing; interrupted.
DONE, UNWRITTEN, FAILED, INTERRUPTED = 0, 2, 3, 130
_BAD = ("failed", "diverged", "oom")


@dataclass
class Tally:
    """What one command did: its trials by status, how many of them needed no training, and why it `stopped` early."""

    ran: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    stopped: str | None = None

    def count(self, status: Status, answered: bool, limit: int | None) -> None:
        """Count one more trial. After `limit` failed trials, set `stopped`, so that the search stops."""
        self.ran[status] += 1
        self.answered += answered
        bad = sum(self.ran[word] for word in _BAD)
        if limit is not None and bad >= limit:
            self.stopped = f"stopped after {bad} failed trial{'s' * (bad != 1)}"

    def catch_up(self, found: Iterable[Status]) -> None:
        """Count trials that were ended here because their results had been stored by an earlier process."""
        for status in found:
            self.count(status, answered=True, limit=None)


def failure_text(claim: Claim, end: End) -> str | None:
    """Return one line on what went wrong with a trial; `None` if nothing did."""
    if end.status not in _BAD:
        return None
    facts = end.facts or {}
    step = facts.get("diverged_step")
    why = f"diverged at step {step}" if end.status == "diverged" else f"{end.status}: {facts.get('error')}"
    params = ", ".join(f"{path.rpartition('.')[2]}={shown(value)}" for path, value in claim.trial.params.items())
    return f"trial {claim.number} ({params}): {why}"


@dataclass(frozen=True)
class Report:
    """The result of a command: the trials of the study, what this command did, and the files that it wrote.

    `unwritten` has one line for each error that kept a file from being written.
    """

    found: Trials
    out: Path
    tally: Tally
    wall_s: float
    interrupted: bool
    files: tuple[Path, ...]
    unwritten: tuple[str, ...] = ()

    @property
    def finished(self) -> int:
        """The number of trials that count. A trial whose parameters were taken over by another trial does not."""
        return len(_counted(self.found))

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.interrupted:
            return INTERRUPTED
        if self.unwritten:
            return UNWRITTEN
        fine = all(trial.status in ("done", "pruned") for trial in _counted(self.found))
        return DONE if fine and self.finished >= self.found.asked else FAILED

    def in_words(self) -> str:
        """One line: what this command did, and how many trials of the study are finished."""
        ran = ", ".join(f"{number} {status}" for status, number in sorted(self.tally.ran.items()))
        answered = f" ({self.tally.answered} of them answered from stored results)" * (self.tally.answered > 0)
        distinct = len({trial.run_ids for trial in _counted(self.found)})
        parts = [f"this command: {ran or 'no trial'}{answered}"]
        done, asked = self.finished, self.found.asked
        far = f"{done} of {asked} trials" if done <= asked else f"{done} trials ({asked} asked for)"
        parts += [f"study {self.found.study}: {far}, {distinct} distinct points"]
        refused = sum(trial.status == "refused" for trial in self.found.trials)
        parts += [f"{refused} points were left out because their keys contradict each other"] * (refused > 0)
        parts += [self.tally.stopped] if self.tally.stopped else []
        if any(trial.status in ("failed", "oom") for trial in _counted(self.found)):
            parts.append("--retry-failed tries the failed trials again")
        return "; ".join([*parts, f"{self.wall_s:.0f} s"])

    def as_dict(self) -> dict[str, Any]:
        """The study as in `trials.json`, together with what this command did."""
        return {
            "out": str(self.out),
            **as_dict(self.found),
            "finished": self.finished,
            "ran": dict(self.tally.ran),
            "answered": self.tally.answered,
            "stopped": self.tally.stopped,
            "wall_s": self.wall_s,
            "files": [str(path) for path in self.files],
        }


def _counted(found: Trials) -> list[Any]:
    taken = {trial.retry_of for trial in found.trials}
    return [trial for trial in found.trials if trial.counts and trial.number not in taken]

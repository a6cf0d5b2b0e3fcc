"""Report what one command did in a search: trials by status, written files, exit code; in words and as data."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mclab.config.keys import shown
from mclab.plan.space_trials import Status, Trials, as_dict
from mclab.sweep.study import Claim, End

#: Exit codes: all done; files that could not be written; some trials failed, diverged or are missing; interrupted.
DONE, UNWRITTEN, FAILED, INTERRUPTED = 0, 2, 3, 130
_BAD = ("failed", "diverged", "oom")


@dataclass
class Tally:
    """What one command did: its finished trials by status, how many needed no training, why it `stopped` early."""

    ran: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    stopped: str | None = None

    def count(self, status: Status, answered: bool, limit: int | None) -> None:
        """Count one more trial; if `limit` trials have gone wrong, say in `stopped` that the search stops."""
        self.ran[status] += 1
        self.answered += answered
        bad = sum(self.ran[word] for word in _BAD)
        if limit is not None and bad >= limit:
            self.stopped = f"stopped after {bad} failed trial{'s' * (bad != 1)}"

    def catch_up(self, found: Iterable[Status]) -> None:
        """Count trials that were ended with results which an earlier process had stored."""
        for status in found:
            self.count(status, answered=True, limit=None)


def failure_text(claim: Claim, end: End) -> str | None:
    """What went wrong with a trial, in a line; `None` where nothing did."""
    if end.status not in _BAD:
        return None
    facts = end.facts or {}
    step = facts.get("diverged_step")
    why = f"diverged at step {step}" if end.status == "diverged" else f"{end.status}: {facts.get('error')}"
    params = ", ".join(f"{path.rpartition('.')[2]}={shown(value)}" for path, value in claim.trial.params.items())
    return f"trial {claim.number} ({params}): {why}"


@dataclass(frozen=True)
class Report:
    """The result of a command: the study's trials, what this command did itself, and the files that it wrote.

    `unwritten` has one line for each fault that kept a file from being written.
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
        """Number of trials of the study that count; a trial whose parameters another one took over does not."""
        return len(_counted(self.found))

    @property
    def exit_code(self) -> int:
        """The command's exit code."""
        if self.interrupted:
            return INTERRUPTED
        if self.unwritten:
            return UNWRITTEN
        fine = all(trial.status in ("done", "pruned") for trial in _counted(self.found))
        return DONE if fine and self.finished >= self.found.asked else FAILED

    def in_words(self) -> str:
        """What this command did and how far the study is, in a line."""
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
        """The study as `trials.json` has it, and what this command did."""
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

"""What one command did of a search."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mclab.config.keys import shown
from mclab.plan.space_trials import Status
from mclab.sweep.study import Claim, End

_BAD = ("failed", "diverged", "oom")


@dataclass
class Tally:
    """What one command did: its finished trials by status, how many of them were answered without training."""

    ran: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    stopped: str | None = None

    def count(self, status: Status, answered: bool, limit: int | None) -> None:
        """One more; so many that went wrong stop the search."""
        self.ran[status] += 1
        self.answered += answered
        bad = sum(self.ran[word] for word in _BAD)
        if limit is not None and bad >= limit:
            self.stopped = f"stopped after {bad} failed trial{'s' * (bad != 1)}"

    def catch_up(self, found: Iterable[Status]) -> None:
        """Trials that ended with what a process before this one has stored."""
        for status in found:
            self.count(status, answered=True, limit=None)


def wrong(claim: Claim, end: End) -> str | None:
    """What went wrong with a trial, in a line; `None` where nothing did."""
    if end.status not in _BAD:
        return None
    facts = end.facts or {}
    step = facts.get("diverged_step")
    why = f"diverged at step {step}" if end.status == "diverged" else f"{end.status}: {facts.get('error')}"
    params = ", ".join(f"{path.rpartition('.')[2]}={shown(value)}" for path, value in claim.trial.params.items())
    return f"trial {claim.number} ({params}): {why}"

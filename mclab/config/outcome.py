"""What a finished run has to say: made by training, kept by the store, read by the report."""

from dataclasses import dataclass, field
from typing import Any

from mclab.config.run import Status

#: The name under which a metric over all slices stands, beside the slices' own names.
ALL = "all"
#: Statuses that no later command runs again; `oom` and `failed` run again with --retry-failed.
FINAL: tuple[Status, ...] = ("done", "diverged", "pruned")


@dataclass(frozen=True)
class Score:
    """Accuracy (share of scored positions answered) and mean cross-entropy in nats."""

    accuracy: float
    loss: float


@dataclass(frozen=True)
class Outcome:
    """One run's result. `valid` and `test` map `ALL` and every slice to a score; empty unless status is done.

    `curve` holds a mapping per look: step, loss, grad_norm, lr, and where valid was evaluated `valid` with
    `{slice: {"accuracy": ..., "loss": ...}}`. `overlap` is the share of test sequences that train has seen.
    """

    status: Status
    steps: int = 0
    valid: dict[str, Score] = field(default_factory=dict)
    test: dict[str, Score] = field(default_factory=dict)
    steps_to_99: int | None = None
    overlap: float | None = None
    params: int | None = None
    state_fixed: int | None = None
    state_cached: int | None = None
    tokens_per_s: float | None = None
    wall_s: float | None = None
    diverged_step: int | None = None
    error: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    curve: tuple[dict[str, Any], ...] = ()

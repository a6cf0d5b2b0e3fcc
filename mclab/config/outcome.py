"""The result of a run: made by training, kept by the store, read by the report."""

from dataclasses import dataclass, field
from typing import Any

from mclab.config.run import Status

#: The name of the mean over all slices, next to the slices' own names.
ALL = "all"
#: Statuses that no later command runs again; `oom` and `failed` run again with --retry-failed.
FINAL: tuple[Status, ...] = ("done", "diverged", "pruned")


@dataclass(frozen=True)
class Score:
    """`accuracy` is the share of answers that are right as a whole, `token_accuracy` that of their tokens.

    They are the same where an answer is one token. `value_accuracy` is the share of single values that are right as a
    whole, given the right ones before them; `None` where an answer is one value. `loss` is the mean cross-entropy of
    the tokens in nats. All are teacher-forced, which makes no difference for whole answers: a greedy answer is right
    exactly when each of its tokens is right given the right ones before it.
    `values_found` is RULER's score (arXiv 2404.06654), on test where an answer is several values: the model continues
    from its own tokens, and a value counts wherever it occurs in the answer.
    """

    accuracy: float
    loss: float
    token_accuracy: float | None = None
    value_accuracy: float | None = None
    values_found: float | None = None


@dataclass(frozen=True)
class Outcome:
    """One run's result. `valid` and `test` map `ALL` and every slice to a score; empty unless status is done.

    `ALL` is the mean over the task's own slices. `test` also holds the slices that `eval.task` adds.

    `curve` holds a mapping per evaluation: step, loss, grad_norm, lr, and where valid was evaluated `valid` with
    `{slice: {"accuracy": ..., "loss": ...}}`. `overlap` is the share of test sequences that train has seen. `weights`
    are the trained model as a safetensors file, where they were asked for. `without_recall` is what predictors that do
    not recall score on the same test: by slice (and `ALL`) and by their names, of those that count there.
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
    without_recall: dict[str, dict[str, float]] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    curve: tuple[dict[str, Any], ...] = ()
    weights: bytes | None = field(default=None, repr=False, compare=False)

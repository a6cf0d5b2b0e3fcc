"""The result of a run. Training makes it, the store keeps it, and the report reads it."""

from dataclasses import dataclass, field
from typing import Any

from mclab.config.run import Status

#: The name of the mean over all of the task's own slices; it stands next to the names of the slices.
ALL = "all"
#: Runs with these statuses never run again; `oom` and `failed` run again with --retry-failed.
FINAL: tuple[Status, ...] = ("done", "diverged", "pruned")


@dataclass(frozen=True)
class Score:
    """The scores of a model on one slice.

    `accuracy` is the share of answers with every token right; `token_accuracy` is the share of answer tokens that are
    right. The two are equal if an answer is one token. `value_accuracy` is the share of single values with every token
    right, given the right values before them; it is `None` if an answer is one value. `loss` is the mean cross-entropy
    of the answer tokens in nats. All these are teacher-forced. For `accuracy` this makes no difference: a greedy answer
    is right exactly if each of its tokens is right given the right tokens before it.
    `values_found` is RULER's score (arXiv 2404.06654), computed on test if an answer has several values: the model
    generates from its own tokens, and a value counts at any position of the answer.
    """

    accuracy: float
    loss: float
    token_accuracy: float | None = None
    value_accuracy: float | None = None
    values_found: float | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of one run.

    `valid` and `test` map `ALL` and every slice to a score; both are empty unless `status` is done. `ALL` is the mean
    over the task's own slices. `test` also holds the slices that `eval.task` adds.

    `curve` holds one mapping per evaluation, with step, loss, grad_norm, lr and, if valid was evaluated, `valid` as
    `{slice: {"accuracy": ..., "loss": ...}}`. `overlap` is the share of test sequences that also occurred in training.
    `weights` is the trained model as a safetensors file, if it was asked for. `without_recall` holds the accuracies on
    the same test of predictors that do not recall: slice (or `ALL`) -> name of the predictor -> accuracy, for the
    predictors that apply to the slice.
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

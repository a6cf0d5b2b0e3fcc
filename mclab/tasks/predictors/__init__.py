"""Predictors that answer without recall: pure functions that look at no key and are fitted to training sequences.

To add a task, list here the predictors that could answer it without the key. A predictor that copies a value out of the
sequence is used only if the task has two keys or more: with a single key, copying its value is recall.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from mclab.config.task import TaskConfig
from mclab.tasks.base import Batch
from mclab.tasks.predictors import needles, pairs
from mclab.tasks.predictors.table import TrainingSet, bigram

#: (config of the test, test, training sets) -> [R, B, Q]: the predicted token at every scored position of the test.
Predictor = Callable[[Any, Batch, Sequence[TrainingSet]], Tensor]

#: The predictors that copy a value: {task: {name: predictor}}.
COPYING: dict[str, dict[str, Predictor]] = {
    "mqar": {"latest value": pairs.latest, "any value": pairs.some, "position alone": pairs.by_position},
    "ar": {
        "most frequent value": pairs.most_frequent,
        "latest value": pairs.latest,
        "any value": pairs.some,
        "position alone": pairs.by_position,
    },
    "niah": {
        "first value": needles.first,
        "latest value": needles.latest,
        "any value": needles.some,
        "key-blind needle": needles.key_blind,
    },
    "text": {},
    "facts": {},
    "module": {},
}
#: The predictors that see only single tokens, by name. They are used for every task.
BLIND: dict[str, Predictor] = {"bigram": bigram}


def predictors(config: TaskConfig) -> dict[str, Predictor]:
    """Return {name: predictor} for the predictors of the task `config`."""
    return {**(COPYING[config.name] if config.keys > 1 else {}), **BLIND}


__all__ = ["BLIND", "COPYING", "Predictor", "TrainingSet", "predictors"]

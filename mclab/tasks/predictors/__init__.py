"""What answers without recall: predictors that look at no key, fitted on training sequences, pure functions.

To add a task, name here what could answer it without the key. A predictor that copies a value out of the sequence
counts where there are two keys or more: of one key alone to hold the value is to recall it.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from mclab.config.task import TaskConfig
from mclab.tasks.base import Batch
from mclab.tasks.predictors import needles, pairs
from mclab.tasks.predictors.table import TrainingSet, bigram

#: The token chosen at every scored position of a test, [R, B, Q]. The config is the test's own.
Predictor = Callable[[Any, Batch, Sequence[TrainingSet]], Tensor]

#: By task and name, those that copy a value.
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
#: Those that know single tokens alone; they count everywhere.
BLIND: dict[str, Predictor] = {"bigram": bigram}


def predictors(config: TaskConfig) -> dict[str, Predictor]:
    """Those that count for a task."""
    return {**(COPYING[config.name] if config.keys > 1 else {}), **BLIND}


__all__ = ["BLIND", "COPYING", "Predictor", "TrainingSet", "predictors"]

"""Compute the baseline without recall: what the trivial predictors score on a run's test sequences, without a model."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mclab.config.outcome import ALL
from mclab.config.run import RunConfig
from mclab.config.task import TaskConfig
from mclab.tasks import TASKS
from mclab.tasks.predictors import Predictor, TrainingSet, predictors
from mclab.tasks.scoring import counts

#: Predictors are fitted to at most this many training sequences, and to at most this many tokens of these.
TRAINING_SEQUENCES, TRAINING_TOKENS = 2048, 2**18
#: Predictors are scored on at most this many tokens of a slice.
TEST_TOKENS = 2**20
#: At least this many sequences are used, even if they have more tokens than the two limits above allow.
FEWEST = 16

#: {slice: {predictor: accuracy}}.
Scores = dict[str, dict[str, float]]


def without_recall(run: RunConfig, seed: int) -> Scores:
    """Return {slice: {predictor: share of whole answers that it gets right}} for the slices of the run's test.

    Under `ALL` is the mean over the task's own slices. The result depends only on the tasks, the number of test
    sequences and the seed; it is computed once for all runs that share these.
    """
    parts = tuple((part.weight, part.task.as_trained()) for part in run.mix)
    found = _scores(run.task, tuple(run.tested.items()), parts, seed, run.eval.test)
    return {part: dict(scores) for part, scores in found.items()}


@lru_cache(maxsize=256)
def _scores(
    task: TaskConfig,
    tested: tuple[tuple[str, TaskConfig], ...],
    parts: tuple[tuple[int, TaskConfig], ...],
    seed: int,
    count: int,
) -> Scores:
    training = fitted_on(parts, seed)
    found = {}
    for name, part in tested:
        named = predictors(task if name in task.slices or task.keys > 1 else part)
        found[name] = scored(part, named, training, seed, "test", count)
    own = [found[name] for name in task.slices]
    return {ALL: {each: sum(part[each] for part in own) / len(own) for each in predictors(task)}, **found}


def fitted_on(parts: Iterable[tuple[int, TaskConfig]], seed: int) -> list[TrainingSet]:
    """Return the first training sequences of every task in a mix of (weight, task), with answers as in a test."""
    known = list(parts)
    whole = sum(weight for weight, _ in known)
    return [_training_set(task, seed, max(1, TRAINING_SEQUENCES * weight // whole)) for weight, task in known]


def _training_set(task: TaskConfig, seed: int, count: int) -> TrainingSet:
    few = min(count, max(FEWEST, TRAINING_TOKENS // task.length))
    asked = task.as_tested()
    return TrainingSet(asked, TASKS[task.name].batch(asked, [seed], "train", 0, few, "cpu"))


def scored(
    task: TaskConfig,
    named: Mapping[str, Predictor],
    training: Sequence[TrainingSet],
    seed: int,
    split: str,
    count: int,
    start: int = 0,
) -> dict[str, float]:
    """Return {predictor: share of whole answers that it gets right} on `count` sequences of `split` from `start`."""
    few = min(count, max(FEWEST, TEST_TOKENS // task.length))
    test = TASKS[task.name].batch(task, [seed], split, start, few, "cpu")
    found = {}
    for name, predictor in named.items():
        right, answers, *_ = counts(
            predictor(task, test, training), test.answers, task.answer_tokens, task.value_tokens
        ).tolist()
        found[name] = right[0] / answers[0]
    return found

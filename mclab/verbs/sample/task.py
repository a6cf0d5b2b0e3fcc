"""Make sequences of a task: tokens with roles and names, the answers, and the answers of predictors without recall."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mclab.config.keys import plain_sections
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.task import TaskConfig
from mclab.plan.grid import plan_from
from mclab.tasks import NO_ANSWER, NO_SLICE, TASKS, Role
from mclab.tasks.baseline import TRAINING_SEQUENCES, fitted_on, scored
from mclab.tasks.predictors import TrainingSet, predictors

#: The most sequences of each test slice on which the predictors are scored.
TESTED = 1024
Row = Mapping[str, Any]
#: The error message of a run config whose task is too small for its evaluation sets.
_TOO_SMALL = re.compile(r"smallest slice has only (\d+) different")


def sampled(task: str, overrides: Sequence[str], *, seed: int, split: str, count: int) -> list[dict[str, Any]]:
    """Return the first `count` sequences of a split as `rows_of` does, each with the additional key `without_recall`.

    `without_recall` maps each predictor without recall to its answers by scored position. `overrides` are the task's
    keys (`pairs=4` or `task.pairs=4`); other keys of a run are allowed and have no effect. Raises `ConfigError` for an
    unknown task, split or key, and for a task that is too small for the split.
    """
    run = _config(task, overrides)
    try:
        guesses = _guesses(run.task, fitted_on([(1, run.task)], seed), seed, split, count)
        return [
            {**row, "without_recall": guess}
            for row, guess in zip(rows_of(run, seed, split, count), guesses, strict=True)
        ]
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _guesses(
    task: TaskConfig, lessons: Sequence[TrainingSet], seed: int, split: str, count: int
) -> Iterator[dict[str, dict[int, int]]]:
    """Yield for each sequence {predictor: {scored position: the token that it answers}}."""
    asked = task.as_tested()
    batch = TASKS[task.name].batch(asked, [seed], split, 0, count, "cpu")
    chosen = {name: predictor(asked, batch, lessons)[0].tolist() for name, predictor in predictors(asked).items()}
    for i, (places, answers) in enumerate(zip(batch.positions[0].tolist(), batch.answers[0].tolist(), strict=True)):
        at = [place for place, answer in enumerate(answers) if answer != NO_ANSWER]
        yield {
            name: {places[q]: said[i][q] for q in sorted(at, key=places.__getitem__)} for name, said in chosen.items()
        }


def without_recall(task: str, overrides: Sequence[str], *, seed: int) -> dict[str, dict[str, float]]:
    """Return {part: {predictor: share of right answers}} for predictors that do not read the key.

    The parts are `train`, with other sequences than those to which the predictors were fitted, and each slice of the
    test. Raises `ConfigError` as `sampled` does.
    """
    run = _config(task, overrides)
    asked, named = run.task.as_tested(), predictors(run.task)
    try:
        lessons = fitted_on([(1, run.task)], seed)
        found = {"train": scored(asked, named, lessons, seed, "train", TRAINING_SEQUENCES, TRAINING_SEQUENCES)}
        slices = {part: scored(alone, named, lessons, seed, "test", TESTED) for part, alone in run.tested.items()}
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return found | slices


def _config(task: str, overrides: Sequence[str]) -> RunConfig:
    """Return the run config of `task` with `overrides`.

    Its evaluation sets have one sequence, so that a task that is too small for the default sets can still be shown.
    """
    known = ("task", *plain_sections())
    full = [text if text.partition(".")[0] in known else f"task.{text}" for text in overrides]
    try:
        plan = plan_from({"base": {"task": {"name": task}, "eval": {"valid": 1, "test": 1}}}, "sample", full)
    except ConfigError as error:
        if (small := _TOO_SMALL.search(str(error))) and not any(text.startswith("eval.") for text in full):
            raise ConfigError(
                f"task: only {small[1]} different sequences exist, too few for train, valid and test; "
                f"give a larger vocab, length or number of pairs"
            ) from error
        raise
    return next(iter(plan.cells[0].candidates[0].runs.values()))


def rows_of(run: RunConfig, seed: int, split: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield the first `count` sequences of a split: the tokens, the role and the name of each token, and the answers.

    `answers` maps each scored position to the token that is wanted there, `wanted` maps it to the name of that token.
    `contradicted` counts the queries whose key also occurs earlier as filler, followed by another token than the
    answer. Raises `ValueError` for an unknown split and for a task that is too small for the split.
    """
    task, module = run.task, TASKS[run.task.name]
    batch = module.batch(task, [seed], split, 0, count, "cpu")
    roles = module.roles(task, batch)[0].tolist()
    for i in range(count):
        asked = zip(batch.positions[0, i].tolist(), batch.answers[0, i].tolist(), strict=True)
        answers = {at: answer for at, answer in sorted(asked) if answer != NO_ANSWER}
        tokens = batch.tokens[0, i].tolist()
        row: dict[str, Any] = {
            "task": task.name,
            "sample": i,
            "split": split,
            "seed": seed,
            "slice": None if (which := int(batch.slices[0, i])) == NO_SLICE else task.slices[which],
            "tokens": tokens,
            "roles": [Role(role).name.lower() for role in roles[i]],
            "words": words(task, tokens),
            "answers": answers,
            "wanted": dict(zip(answers, words(task, answers.values()), strict=True)),
        }
        yield {**row, "contradicted": sum(_contradicted(row, *query) for query in answers.items())}


def words(task: TaskConfig, tokens: Iterable[int]) -> list[str]:
    """Return the names that the task gives to `tokens`, e.g. `k2`, `KEY`, `7`."""
    return [TASKS[task.name].token_name(task, token) for token in tokens]


def _contradicted(row: Row, at: int, answer: int) -> bool:
    tokens, roles = row["tokens"], row["roles"]
    key = tokens[at]
    return any(tokens[j] == key and roles[j] == "filler" and tokens[j + 1] != answer for j in range(at))

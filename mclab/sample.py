"""A task's sequences as a person reads them: keys, values, queries and the wanted answers, marked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mclab.config.keys import sections
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.tasks import NO_ANSWER, TASKS, Role

#: Tokens in a printed line.
LINE = 16
LEGEND = "k key, v value, ?key=answer where the model is asked (the answer is a target, never in the input), . filler"

Row = Mapping[str, Any]
#: What a run says of a task that is too small for its evaluation sets.
_TOO_SMALL = re.compile(r"smallest slice holds (\d+) different")


def sampled(task: str, overrides: Sequence[str], *, seed: int, split: str, count: int) -> list[dict[str, Any]]:
    """The first `count` sequences of a split: tokens, the role of each, the answer wanted at each query's place.

    `overrides` are the task's keys (`pairs=4` or `task.pairs=4`); other keys of a run are allowed and change nothing.
    `contradicted` counts the queries before which their key also stands as filler, with another token behind it.
    Raises `ConfigError` for an unknown task, split or key, and for a task too small for the split.
    """
    run = _config(task, overrides)
    try:
        return list(_rows(run, seed, split, count))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _config(task: str, overrides: Sequence[str]) -> RunConfig:
    """Evaluation sets of one sequence: a space too small for the default test set can still be looked at."""
    known = ("task", *sections())
    full = [text if text.partition(".")[0] in known else f"task.{text}" for text in overrides]
    try:
        plan = plan_from({"base": {"task": {"name": task}, "eval": {"valid": 1, "test": 1}}}, "sample", full)
    except ConfigError as error:
        if (small := _TOO_SMALL.search(str(error))) and not any(text.startswith("eval.") for text in full):
            raise ConfigError(
                f"task: holds {small[1]} different sequences, too few for train, valid and test to have some each; "
                f"take a larger vocab, length or number of pairs"
            ) from error
        raise
    return next(iter(plan.cells[0].candidates[0].runs.values()))


def _rows(run: RunConfig, seed: int, split: str, count: int) -> Iterator[dict[str, Any]]:
    module = TASKS[run.task.name]
    batch = module.batch(run.task, [seed], split, 0, count, "cpu")
    roles = module.roles(run.task, batch)[0].tolist()
    for i in range(count):
        asked = zip(batch.positions[0, i].tolist(), batch.answers[0, i].tolist(), strict=True)
        row: dict[str, Any] = {
            "sample": i,
            "split": split,
            "seed": seed,
            "slice": run.task.slices[int(batch.slices[0, i])],
            "tokens": batch.tokens[0, i].tolist(),
            "roles": [Role(role).name.lower() for role in roles[i]],
            "answers": {at: answer for at, answer in sorted(asked) if answer != NO_ANSWER},
        }
        yield {**row, "contradicted": sum(_contradicted(row, *query) for query in row["answers"].items())}


def _contradicted(row: Row, at: int, answer: int) -> bool:
    tokens, roles = row["tokens"], row["roles"]
    key = tokens[at]
    return any(tokens[j] == key and roles[j] == "filler" and tokens[j + 1] != answer for j in range(at))


def as_text(rows: Sequence[Row]) -> str:
    """The sequences in lines of 16 tokens, what the marks mean, and how many queries have no clear answer."""
    contradicted, asked = sum(row["contradicted"] for row in rows), sum(len(row["answers"]) for row in rows)
    flaw = f"{contradicted} of {asked} queries contradicted: before them their key stands as filler, with another token"
    return "\n\n".join([*map(_text, rows), "\n".join([LEGEND, *[f"{flaw} behind it"] * bool(contradicted)])])


def _text(row: Row) -> str:
    marked = zip(row["tokens"], row["roles"], strict=True)
    words = [_word(token, role, row["answers"].get(at)) for at, (token, role) in enumerate(marked)]
    width = max(map(len, words)) + 1
    lines = [f"sample {row['sample']} of {row['split']}, seed {row['seed']}, {row['slice']}"]
    for start in range(0, len(words), LINE):
        lines.append(f"{start:5}  " + "".join(f"{word:<{width}}" for word in words[start : start + LINE]).rstrip())
    return "\n".join(lines)


def _word(token: int, role: str, answer: int | None) -> str:
    if answer is not None:
        return f"?{token}={answer}"
    if role == "filler":
        return f".{token}" if token else "."
    return {"key": "k", "value": "v", "query": "?"}[role] + str(token)

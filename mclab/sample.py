"""A task's sequences as a person reads them: keys, values, queries and the wanted answers, marked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.task import TASKS as CONFIGS
from mclab.plan.grid import plan_from
from mclab.tasks import NO_ANSWER, SPLITS, TASKS, Role

#: Tokens in a printed line.
LINE = 16
LEGEND = "k key, v value, ?key=answer where the model is asked (the answer is a target, never in the input), . filler"


def sampled(
    task: str, overrides: Sequence[str], *, seed: int, split: str, count: int, as_json: bool = False
) -> str:
    """The first `count` sequences of a split, as text or JSON. `overrides` are task keys (`task.pairs=4`, `pairs=4`).

    Raises `ConfigError` for an unknown task, split or key.
    """
    for word, given, known in (("task", task, tuple(CONFIGS)), ("split", split, SPLITS)):
        if given not in known:
            near = get_close_matches(given, known, 1) or known
            raise ConfigError(f"{word}: {given!r} is not one of {', '.join(known)}; take {near[0]}")
    rows = list(_rows(_config(task, overrides), seed, split, count))
    if as_json:
        return json.dumps(rows, indent=1)
    return "\n\n".join([*(_text(row) for row in rows), LEGEND])


def _config(task: str, overrides: Sequence[str]) -> RunConfig:
    """Evaluation sets of one sequence: a space too small for the default test set can still be looked at."""
    full = [text if text.startswith("task.") else f"task.{text}" for text in overrides]
    plan = plan_from({"base": {"task": {"name": task}, "eval": {"valid": 1, "test": 1}}}, "sample", full)
    return next(iter(plan.cells[0].candidates[0].runs.values()))


def _rows(run: RunConfig, seed: int, split: str, count: int) -> Iterator[dict[str, Any]]:
    module = TASKS[run.task.name]
    batch = module.batch(run.task, [seed], split, 0, count, "cpu")
    roles = module.roles(run.task, batch)[0].tolist()
    for i in range(count):
        asked = zip(batch.positions[0, i].tolist(), batch.answers[0, i].tolist(), strict=True)
        yield {
            "sample": i,
            "split": split,
            "seed": seed,
            "slice": run.task.slices[int(batch.slices[0, i])],
            "tokens": batch.tokens[0, i].tolist(),
            "roles": [Role(role).name.lower() for role in roles[i]],
            "answers": {at: answer for at, answer in asked if answer != NO_ANSWER},
        }


def _text(row: Mapping[str, Any]) -> str:
    words = [_word(*pair, row["answers"].get(at)) for at, pair in enumerate(zip(row["tokens"], row["roles"], strict=True))]
    width = max(map(len, words)) + 1
    lines = [f"sample {row['sample']} of {row['split']}, seed {row['seed']}, {row['slice']}"]
    for start in range(0, len(words), LINE):
        lines.append(f"{start:5}  " + "".join(f"{word:<{width}}" for word in words[start : start + LINE]).rstrip())
    return "\n".join(lines)


def _word(token: int, role: str, answer: int | None) -> str:
    if answer is not None:
        return f"?{token}={answer}"
    return {"key": f"k{token}", "value": f"v{token}", "query": f"?{token}"}.get(role, "." if token == 0 else f".{token}")

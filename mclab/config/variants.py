"""Variants: a task with some keys changed. `eval.task` adds variants to the test, `train.task` mixes them in training.

In a grid a variant is a mapping such as `{length: 128, pairs: 32}`. In a run it is a line of text such as
`length=128 pairs=32`, so that it can be hashed, stored and shown like any other value.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import cycle, islice, product
from math import prod
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationError, WithJsonSchema

from mclab.config.error import did_you_mean
from mclab.config.strict import as_texts, cut, refuse_large
from mclab.config.task.base import TaskConfig

#: The name, within a variant, of its share in a mix; all other names are keys of the task.
WEIGHT = "weight"
#: The largest weight, and the largest number of variants from one key.
MOST_WEIGHT, MOST_VARIANTS = 1000, 1000
#: Keys that no variant can change, because the model is trained for their values.
_FIXED = ("name", "vocab")
#: The type of `eval.task` and `train.task` in readable form.
TYPE_TEXT = "mapping of task keys, or list of them"

_KEY = re.compile(r"\s*(\w+)=")
_JSON = json.JSONDecoder()


def _as_lines(value: Any) -> Any:
    given = [value] if isinstance(value, Mapping | str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("must be a mapping of the task's keys, or a list of such mappings ([] for none)")
    if len(given) > MOST_VARIANTS:
        raise ValueError(f"must have at most {MOST_VARIANTS} variants, but has {len(given)}")
    return tuple(map(_as_line, given))


def _as_line(value: Any) -> str:
    """Return the canonical line of a variant: keys are sorted, and a weight of 1 is omitted if there are other keys."""
    if isinstance(value, str):
        words = list(_parsed(value))
        value = dict(words)
        if twice := [key for key in value if [word[0] for word in words].count(key) > 1]:
            raise ValueError(f"the key {twice[0]} is given twice; keep one")
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping of the task's keys, or a list of such mappings ([] for none)")
    refuse_large(value)
    changes = {key: given for key, given in value.items() if key != WEIGHT or given is True or given != 1}
    return " ".join(as_texts(changes or {WEIGHT: 1}))


def _parsed(line: str) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a line such as `a=1 b=[2, 3] c=text`. A value that is not valid JSON is text."""
    at = 0
    while line[at:].strip():
        found = _KEY.match(line, at)
        if not found:
            raise ValueError(f"must be key=value pairs or a mapping of the task's keys, not {cut(line[at:].strip())!r}")
        value, at = _value(line, found.end())
        yield found[1], value


def _value(line: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at `at`, and the position where it ends."""
    end = (line + " ").index(" ", at)
    try:
        value, stop = _JSON.raw_decode(line, at)
    except ValueError:
        return line[at:end], end
    return (value, stop) if line[stop : stop + 1] in ("", " ") else (line[at:end], end)


class _Lines(BeforeValidator):
    """A validator that also marks a config field as one whose values are variants."""


#: One mapping of task keys or a list of such mappings, stored as one line of text per mapping.
Variants = Annotated[
    tuple[str, ...],
    _Lines(_as_lines),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}),
]


def holds_variants(metadata: Sequence[Any]) -> bool:
    """Return whether the metadata of a config field contain `_Lines`, which says that its values are variants."""
    return any(isinstance(mark, _Lines) for mark in metadata)


class Variant(NamedTuple):
    """A task with some keys changed. `label` holds the changed keys that are not in the names of the task's slices."""

    label: str
    weight: int
    task: TaskConfig

    @property
    def slices(self) -> dict[str, str]:
        """{name of a slice in tables, such as `length=128 pairs=32`: its name within the task, `pairs=32`}."""
        return {f"{self.label} {own}".strip(): own for own in self.task.slices}


def variants(task: TaskConfig, lines: tuple[str, ...]) -> tuple[Variant, ...]:
    """Return the variants of `task` that `lines` describe.

    If a list is given for a key that takes one value, each item makes a variant. Raises `ValueError` for unknown keys
    and wrong values; the message is one line that begins with the variant.
    """
    return tuple(variant for line in lines for variant in _of_line(task, line))


def without_repeats(task: TaskConfig, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines without those keys that no variant can change, if they only repeat the value that `task` has."""
    return tuple(line if (own := _changes(task, line)) == dict(_parsed(line)) else _as_line(own) for line in lines)


def _changes(task: TaskConfig, line: str) -> dict[str, Any]:
    return {
        key: value
        for key, value in _parsed(line)
        if key not in _FIXED or value not in (present := getattr(task, key), [present])
    }


def _of_line(task: TaskConfig, line: str) -> Iterator[Variant]:
    changes = _changes(task, line)
    weight = changes.pop(WEIGHT, 1)
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= MOST_WEIGHT:
        raise ValueError(f"{cut(line)}: {WEIGHT} must be a whole number from 1 to {MOST_WEIGHT}")
    _check_keys(task, changes, line)
    fields = type(task).model_fields  # for a key that takes lists, a list is a single value
    several = (key for key in changes if isinstance(changes[key], list) and not isinstance(fields[key].default, tuple))
    lists = {key: changes[key] for key in several}
    if (count := prod(map(len, lists.values()))) > MOST_VARIANTS:
        raise ValueError(f"{cut(line)}: these lists make {count} variants, but at most {MOST_VARIANTS} are allowed")
    for chosen in product(*lists.values()):
        one = {**changes, **dict(zip(lists, chosen, strict=True))}
        yield _variant(task, one, weight, line)


def _check_keys(task: TaskConfig, changes: Mapping[str, Any], line: str) -> None:
    known = [key for key in type(task).model_fields if key not in _FIXED]
    for key, value in changes.items():
        if key in _FIXED:
            raise ValueError(
                f"{cut(line)}: {key} cannot be changed, because the model is trained on one task and one vocabulary"
            )
        if key not in known:
            hint = did_you_mean(key, [*known, WEIGHT]) or f"its keys are {', '.join(known)}"
            raise ValueError(f"{cut(line)}: task {task.name} has no key {key}; {hint}")
        if value == []:
            raise ValueError(f"{cut(line)}: {key}: must have at least one value, got []")


def _variant(task: TaskConfig, changes: Mapping[str, Any], weight: int, line: str) -> Variant:
    try:
        changed = type(task).model_validate({**task.model_dump(), **changes})
    except ValidationError as error:
        raise ValueError(f"{cut(line)}: {_text(error)}") from None
    named = {word.partition("=")[0] for own in changed.slices for word in own.split()}
    label = " ".join(as_texts({key: value for key, value in changes.items() if key not in named}))
    return Variant(label, weight, changed)


def _text(error: ValidationError) -> str:
    detail = error.errors()[0]
    key = ".".join(map(str, detail["loc"]))
    if detail["type"] == "value_error":
        said = str(detail["ctx"]["error"])
    else:
        wanted = detail["msg"].lower().replace("input should be", "must be")
        said = f"{wanted}, got {cut(json.dumps(detail['input']))}"
    return f"{key}: {said}" if key else said


def check_test_variants(task: TaskConfig, tests: Sequence[Variant], count: int) -> None:
    """Raise `ValueError` (one line) if a test variant is not allowed.

    It must have no weight, no slice that the test already has, and at least `count` different sequences for the test.
    """
    names, tasks = (
        dict.fromkeys(task.slices, "the task's own slice"),
        {task.only(own).as_tested(): own for own in task.slices},
    )
    for test in tests:
        if test.weight != 1:
            raise ValueError(
                f"{WEIGHT}={test.weight}: a weight is a share of training, and a test has no weight; leave it out"
            )
        for name, own in test.slices.items():
            alone = test.task.only(own).as_tested()
            if name in names or alone in tasks:
                first = names.get(name) or f"the same as {tasks[alone]}, {names[tasks[alone]]}"
                raise ValueError(f"{name}: the test has this slice already (it is {first}); leave it out")
            names[name], tasks[alone] = "an earlier slice", name
        _check_space(test, count)


def _check_space(test: Variant, count: int) -> None:
    space = test.task.space()
    if space // 4 < count:
        way = f"take eval.test {space // 4} or" if space // 4 else "take"
        name = test.label or next(iter(test.slices))
        raise ValueError(
            f"{name}: eval.test asks for {count} sequences, but the smallest slice has only {space} different ones, "
            f"and the test gets a quarter of these; {way} a larger task"
        )


def check_mix(parts: Sequence[Variant]) -> None:
    """Raise `ValueError` (one line) if two parts of a mix are the same task."""
    seen: set[TaskConfig] = set()
    for part in parts:
        if part.task.as_trained() in seen:
            name = part.label or " ".join(part.task.slices)
            raise ValueError(f"{name}: this task is in the mix twice; list it once and give it a {WEIGHT}")
        seen.add(part.task.as_trained())


@lru_cache(maxsize=256)
def turns(weights: tuple[int, ...], steps: int) -> tuple[int, ...]:
    """Return [steps]: the index of the part of a mix that each step trains on.

    It is always the part that is furthest behind its share, and on a tie the first such part. In a period of
    `sum(weights)` steps each part occurs `weight` times, evenly spread; then the period repeats.
    """
    total, behind, order = sum(weights), [0] * len(weights), []
    for _ in range(min(steps, total)):
        behind = [lag + weight for lag, weight in zip(behind, weights, strict=True)]
        order.append(behind.index(max(behind)))
        behind[order[-1]] -= total
    return tuple(islice(cycle(order), steps))

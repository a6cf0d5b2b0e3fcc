"""A task with some keys changed: what `eval.task` adds to the test and what `train.task` mixes.

In a grid a variant is a mapping, `{length: 128, pairs: 32}`. Inside a run it is a line of text, `length=128 pairs=32`,
so that it can be hashed, stored and shown like any other value.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import product
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationError

from mclab.config.strict import as_texts
from mclab.config.task.base import TaskConfig

#: The pseudo-key of a variant's share in a mix.
WEIGHT = "weight"


def _as_lines(value: Any) -> Any:
    given = [value] if isinstance(value, Mapping | str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("needs a mapping of the task's keys, or a list of such mappings")
    return tuple(map(_as_line, given))


def _as_line(value: Any) -> str:
    if isinstance(value, str) and "=" in value:
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError("needs a mapping of the task's keys, or a list of such mappings")
    return " ".join(as_texts(value))


#: One mapping of task keys or a list of them; held as one line of text each.
Variants = Annotated[tuple[str, ...], BeforeValidator(_as_lines)]


class Variant(NamedTuple):
    """A task with some keys changed. `label` names the changed keys that the task's own slices do not name."""

    label: str
    weight: int
    task: TaskConfig

    @property
    def slices(self) -> dict[str, str]:
        """The name of each slice in tables, `length=128 pairs=32`, and what the task itself calls it."""
        return {f"{self.label} {own}".strip(): own for own in self.task.slices}


def variants(task: TaskConfig, lines: tuple[str, ...]) -> tuple[Variant, ...]:
    """The variants of `task` that `lines` describe; a list for a key that takes one value makes several.

    Raises `ValueError`, one line that begins with the variant, for unknown keys and for values that do not fit.
    """
    return tuple(variant for line in lines for variant in _of_line(task, line))


def _of_line(task: TaskConfig, line: str) -> Iterator[Variant]:
    changes = dict(_parsed(line))
    weight = changes.pop(WEIGHT, 1)
    if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
        raise ValueError(f"{line}: {WEIGHT} needs a whole number from 1")
    _check_keys(task, changes, line)
    lists = {key: value for key, value in changes.items() if isinstance(value, list) and not _takes_lists(task, key)}
    for chosen in product(*lists.values()):
        one = {**changes, **dict(zip(lists, chosen, strict=True))}
        yield _variant(task, one, weight, line)


def _parsed(line: str) -> Iterator[tuple[str, Any]]:
    """`a=1 b=[2, 3] c=word` to its keys and values: JSON where it is JSON, else a word."""
    words: list[str] = []
    for part in line.split(" "):
        if "=" in part:
            words.append(part)
        elif words:
            words[-1] += f" {part}"
    for word in words:
        key, _, text = word.partition("=")
        try:
            yield key, json.loads(text)
        except ValueError:
            yield key, text


def _check_keys(task: TaskConfig, changes: Mapping[str, Any], line: str) -> None:
    known = [key for key in type(task).model_fields if key not in ("name", "vocab")]
    for key in changes:
        if key in ("name", "vocab"):
            raise ValueError(f"{line}: {key} cannot change, the model is trained on one vocabulary")
        if key not in known:
            near = get_close_matches(key, known, 1, cutoff=0.5)
            raise ValueError(f"{line}: {task.name} has no key {key}; did you mean {near[0] if near else known[0]}?")


def _takes_lists(task: TaskConfig, key: str) -> bool:
    return isinstance(type(task).model_fields[key].default, tuple)


def _variant(task: TaskConfig, changes: Mapping[str, Any], weight: int, line: str) -> Variant:
    try:
        changed = type(task).model_validate({**task.model_dump(), **changes})
    except ValidationError as error:
        raise ValueError(f"{line}: {_text(error)}") from None
    named = {word.partition("=")[0] for own in changed.slices for word in own.split()}
    label = " ".join(as_texts({key: value for key, value in changes.items() if key not in named}))
    return Variant(label, weight, changed)


def _text(error: ValidationError) -> str:
    detail = error.errors()[0]
    key = ".".join(map(str, detail["loc"]))
    said = str(detail["ctx"]["error"]) if detail["type"] == "value_error" else detail["msg"].lower()
    return f"{key}: {said}" if key else said

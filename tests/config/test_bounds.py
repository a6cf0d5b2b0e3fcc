"""Every number of a run has an end, written where people and editors look, and nothing beyond it gets in."""

from collections.abc import Iterator
from typing import Any

import pytest

from mclab.config.keys import Key, adapter, all_keys, bounds
from mclab.config.parse import parse_run, quoted
from mclab.config.run import RunConfig
from mclab.config.strict import LARGEST, ConfigError
from mclab.config.task import ArTask, MqarTask, NiahTask
from mclab.config.variants import turns
from mclab.plan.plan import tokens

NUMBERS = [key for key in all_keys() if key.type.startswith(("int", "float"))]
#: Beyond every bound; the last has more digits than Python writes.
HUGE = (2**63, 10**400, -(10**400), 10**6000)


def with_value(key: Key, value: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    *rooms, last = key.path.split(".")
    place = tree
    for room in rooms:
        place = place.setdefault(room, {})
    place[last] = value
    return tree if key.of is None else tree | {rooms[0]: {**tree[rooms[0]], **named(rooms, key, place)}}


def named(rooms: list[str], key: Key, place: dict[str, Any]) -> dict[str, Any]:
    own = {**place, "name": key.of} | ({"module": "own.Mixer"} if key.of == "module" else {})
    return own if len(rooms) == 1 else {rooms[1]: own}


def limits(schema: Any) -> Iterator[dict[str, Any]]:
    """Every number's part of a key's schema."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield schema
        for inner in schema.values():
            yield from limits(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from limits(inner)


def test_there_are_numbers() -> None:
    assert len(NUMBERS) > 30


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: f"{key.path} {key.of}")
def test_every_number_has_an_end_that_is_written_checked_and_in_the_schema(key: Key) -> None:
    assert "<" in key.type
    parts = list(limits(adapter(key.path, key.of).json_schema()))
    assert parts
    assert all("maximum" in part or "exclusiveMaximum" in part for part in parts)
    for value in HUGE if key.type.startswith("int") else (2 * LARGEST, 10**400, -(10**400), 10**6000):
        with pytest.raises(ConfigError) as wrong:
            parse_run(with_value(key, value))
        (line,) = str(wrong.value).splitlines()
        assert line.startswith(f"{key.path}: must be ")
        assert len(line) < 200


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: f"{key.path} {key.of}")
def test_the_end_itself_is_a_value(key: Key) -> None:
    greatest = bounds(key.path, key.of)[1]
    if greatest is not None:
        assert adapter(key.path, key.of).validate_python(greatest) in (greatest, (greatest,))


@pytest.mark.parametrize(
    "data",
    [
        {"model": {"mixer": {"name": "module", "module": "own.Mixer", "args": {"width": [{"a": 2**63}]}}}},
        {"model": {"mixer": {"name": "module", "module": "own.Mixer", "args": {"width": 10**6000}}}},
        {"model": {"mixer": f"attention/{'9' * 400}"}},
        {"model": {"pattern": [f"attention/{'9' * 6000}", "mixer"]}},
        {"model": {"pattern": ["mixer"] * 1025}},
        {"eval": {"task": {"length": 10**6000}}},
        {"eval": {"task": f"length={'9' * 400}"}},
        {"eval": {"task": {"length": list(range(64, 4064, 2))}}},
        {"train": {"task": [{"weight": 10**400}, {"length": 32, "pairs": 4}]}},
        {"task": {"pairs": [1, 2**63]}},
    ],
)
def test_numbers_inside_words_lists_and_mappings(data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_run(data)
    (line,) = str(wrong.value).splitlines()
    assert len(line) < 300


def test_a_large_value_is_told_shortly() -> None:
    assert quoted(10**400) == "a number of about 400 digits"
    assert quoted([1, {"a": "b c"}, None]) == "[1, {a: b c}, null]"
    deep: Any = []
    for _ in range(100_000):
        deep = [deep, deep]  # as many leaves as nobody counts
    assert quoted(deep) == f"{'[' * 57}..."


def test_the_largest_tasks_are_counted_at_once() -> None:
    assert MqarTask(vocab=2**20, length=2**20, pairs=(2**18,)).space() >= 2**64
    assert NiahTask(vocab=2**16, length=2**20, needles=30_000).space() == 2**64
    assert ArTask(vocab=2**20, length=2**16).space() == 2**64
    assert MqarTask(vocab=8, length=16, pairs=(3,)).space() == 6 * 24 * 60


def test_a_mix_of_many_steps_is_counted_by_its_cycles() -> None:
    mix = [{"weight": 3}, {"length": 32, "pairs": 4, "weight": 2}]
    run = RunConfig.model_validate({"train": {"task": mix, "steps": 23, "batch": 1}})
    assert tokens(run) == sum((64, 32)[place] for place in turns((3, 2), 23))
    assert turns((3, 2), 23) == (turns((3, 2), 5) * 5)[:23]
    long = run.model_copy(update={"train": run.train.model_copy(update={"steps": 10**8})})
    assert tokens(long) == 10**8 // 5 * (3 * 64 + 2 * 32)

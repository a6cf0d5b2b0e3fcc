"""The list of keys is the schema's own, nothing more and nothing less."""

import pytest

from mclab.config.keys import (
    Key,
    adapter,
    all_keys,
    by_path,
    default_name,
    named_sections,
    plain_sections,
    sections,
    shown,
)
from mclab.config.model import MIXERS
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import leaves
from mclab.config.task import TASKS


def needed(mixer: str) -> dict[str, str]:
    """A mixer's keys that have no default which trains."""
    return {"name": mixer, **({"module": "own.Mixer"} if mixer == "module" else {})}


def one(path: str) -> Key:
    (key,) = by_path()[path].values()
    return key


def asked(task: str) -> dict[str, str]:
    """The least that a task is written with."""
    return {"name": task, **({"module": "my_tasks.copy"} if task == "module" else {})}


def test_every_key_of_every_kind_of_run_is_listed():
    listed = {(key.path, key.of) for key in all_keys()}
    for task in TASKS:
        for mixer in MIXERS:
            run = parse_run({"task": asked(task), "model": {"mixer": needed(mixer)}})
            for path, _ in leaves(run):
                owners = {None, task if path.startswith("task.") else mixer}
                assert any((path, owner) in listed for owner in owners), path
    assert len(listed) == len(all_keys())


def test_defaults_are_those_of_a_run():
    for mixer in MIXERS:
        run = parse_run({"model": {"mixer": needed(mixer)}})
        for path, value in leaves(run):
            if path not in ("model.mixer.name", "model.mixer.module"):
                keys = by_path()[path]
                assert (keys.get(mixer) or next(iter(keys.values()))).default == value, path


def test_order_is_that_of_declaration():
    paths = [key.path for key in all_keys()]
    assert paths[:3] == ["seed", "task.name", "task.vocab"]
    assert paths.index("model.mixer.name") < paths.index("model.mixer.memory") < paths.index("train.steps")


def test_every_key_says_what_it_means():
    assert [key.path for key in all_keys() if not key.meaning] == []


@pytest.mark.parametrize(
    ("path", "type_text", "default", "of"),
    [
        ("model.mixer.gate", "context | input | none", "context", "memory"),
        ("model.mixer.segment", "int >= 1, <= 1048576", 8, "memory"),
        ("model.mixer.scale", "float > 0, <= 1e+30 or null", None, "memory"),
        ("model.mixer.rotary", "true | false or null", None, "attention"),
        ("model.mixer.hybrid", "none | mal | mag", "none", "memory"),
        ("model.mixer.renormalise", "true | false", True, "memory"),
        ("model.mixer.name", "memory | attention | log_linear | conv | module", "memory", None),
        ("task.name", "mqar | ar | niah | text | facts | module", "mqar", None),
        ("task.pairs", "int >= 1, <= 262144 or list of int", (4, 8, 16), "mqar"),
        ("train.warmup", "float >= 0, <= 1", 0.1, None),
        ("seed", "int >= 0, < 2147483648", 0, None),
    ],
)
def test_how_a_key_is_written(path: str, type_text: str, default: object, of: str | None):
    key = one(path)
    assert (key.type, key.default, key.of) == (type_text, default, of)


def test_every_default_passes_its_own_check():
    for key in all_keys():
        assert adapter(key.path, key.of).validate_python(key.default) == key.default


def test_mappings():
    assert plain_sections() == {"model", "train", "eval"}
    assert named_sections() == {"task", "model.mixer"}
    assert set(sections()["model.mixer"]) == set(MIXERS)
    assert set(sections()["task"]) == set(TASKS)
    assert (default_name("task"), default_name("model.mixer")) == (RunConfig().task.name, RunConfig().model.mixer.name)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1e-3, "0.001"),
        ("none", "none"),
        ((4, 8), "[4, 8]"),
        ([None, False], "[null, false]"),
        ({"name": "attention", "window": None}, "{name: attention, window: null}"),
    ],
)
def test_values_are_shown_as_a_grid_has_them(value: object, text: str):
    assert shown(value) == text

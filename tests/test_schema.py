"""The schema of a grid file: every grid that is a grid validates, a typo does not."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from mclab.config.keys import all_keys
from mclab.plan.grid import KEYS
from mclab.plan.loader import load, parse_value
from mclab.schema import MEANING, grid_schema

GRIDS = sorted((Path(__file__).parents[1] / "ablations").rglob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    Draft7Validator.check_schema(grid_schema())
    return Draft7Validator(grid_schema())


def test_every_key_of_a_grid_and_of_a_run_is_there() -> None:
    schema = grid_schema()
    assert set(schema["properties"]) == set(KEYS) == set(MEANING)
    base = schema["definitions"]["base:"]["properties"]
    assert {key.path for key in all_keys()} <= set(base)
    assert all(key.meaning in str(schema["definitions"][key.path]) for key in all_keys())


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_every_shipped_grid_validates(validator: Draft7Validator, path: Path) -> None:
    assert [error.message for error in validator.iter_errors(load(path.read_bytes(), path.name)[0])] == []


@pytest.mark.parametrize(
    "text",
    [
        "{base: {task: {name: niah, depth: 50}, model: {mixer: {name: module, module: a.B, args: {width: 3}}}}}",
        "{base: {task.pairs: [4, 8], train.task: [{pairs: 4, weight: 3}, {length: 128}], model: {mixer.gate: none}}}",
        "{base: {model: {mixer: titans, pattern: [mamba2, attention/64, transformer++/8]}}}",
        "{grid: {model.mixer: [transformer++, attention/16, {name: transformer++, window: 8}, {hybrid: mal}]}}",
        "{changes: {a: {model.mixer: mamba2}, b: {model: {mixer: {name: transformer++}}}}}",
        "{base: {eval.task: {length: [128, 256], pairs: [[4], [8]]}, model.pattern: [conv/3, mixer], train: null}}",
        "{grid: {model: {mixer: {gate: [context, none]}, dim: [8]}, task.pairs: [4, [8, 16]], train: [{lr: 0.1}]}}",
        "{grid: {model.mixer: [{name: attention, window: null}, {aggregate: none}]}, seeds: 0..4}",
        "{changes: {full: {}, bare: null, '- gate': {model.mixer.gate: input}}, seeds: [0, 3]}",
        "{runs: [{model.dim: 16}, {train: {lr: 0.1}}], exclude: [{model.dim: [16, 32], task: {pairs: 8}}]}",
        "{zip: {task.length: [64], task.pairs: [4]}, when: {model.mixer.k: {model.mixer.aggregate: ssc}}}",
        "{select: {over: {train.lr: [0.1, 1]}, by: valid.loss, seeds: 1}, quick: {base: {train.steps: 2}, zip: null}}",
    ],
)
def test_what_a_grid_may_say_validates(validator: Draft7Validator, text: str) -> None:
    assert [error.message for error in validator.iter_errors(parse_value(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "{bose: {}}",
        "{base: {model: {dimm: 3}}}",
        "{base: {model.mixer.gate: contex}}",
        "{base: {train.lr: fast}}",
        "{base: {train.lr: 0}}",
        "{base: {eval.task: {lenght: 3}}}",
        "{grid: {model.dim: 3}}",
        "{grid: {model.dim: []}}",
        "{grid: {model.mixer: [{name: attention, gate: none}]}}",
        "{grid: {model.mixer: [{kernel: 3}]}}",
        "{grid: {model.mixer: [titan]}}",
        "{base: {model.mixer: module}}",
        "{base: {model.mixer: titans/4}}",
        "{base: {model.pattern: [mamba]}}",
        "{base: {model.pattern: [attention/0]}}",
        "{changes: {a: {model.mixer: {name: transformer++, conv: 4}}}}",
        "{exclude: [{model.mixer: titans}]}",
        "{grid: {seed: [0, 1]}}",
        "{changes: {a: {model.mixer.gat: none}}}",
        "{select: {over: {task.pairs: [4]}}}",
        "{select: {over: {train.lr: [0.1]}, by: test.accuracy}}",
        "{exclude: [{model.dim: big}]}",
        "{seeds: 5}",
        "{quick: {question: x}}",
    ],
)
def test_a_typo_does_not(validator: Draft7Validator, text: str) -> None:
    data: Any = parse_value(text)
    assert list(validator.iter_errors(data))

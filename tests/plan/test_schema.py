"""The schema of a grid file: every grid that is a grid validates, a typo does not."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from mclab.config.keys import all_keys
from mclab.config.strict import ConfigError
from mclab.plan.grid import KEYS
from mclab.plan.loader import load, parse_value
from mclab.plan.schema import MEANING, SPACE_MEANING, grid_schema, space_schema
from mclab.plan.space_load import KEYS as SPACE_KEYS
from mclab.plan.space_load import load_space

ROOT = Path(__file__).parents[2]
GRIDS = sorted((ROOT / "ablations").rglob("*.yaml"))
SPACES = sorted((ROOT / "sweeps").rglob("*.yaml"))


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


# ---- spaces ----


@pytest.fixture(scope="module")
def spaces() -> Draft7Validator:
    Draft7Validator.check_schema(space_schema())
    return Draft7Validator(space_schema())


def test_every_key_of_a_space_is_there() -> None:
    assert set(space_schema()["properties"]) == set(SPACE_KEYS) == set(SPACE_MEANING)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_every_shipped_space_validates(spaces: Draft7Validator, path: Path) -> None:
    assert [error.message for error in spaces.iter_errors(load(path.read_bytes(), path.name)[0])] == []


@pytest.mark.parametrize(
    "text",
    [
        "{space: {train.lr: {low: 1.0e-3, high: 1.0e-1, log: true}, model: {dim: {low: 16, high: 64, step: 16}}}}",
        "{space: {model.mixer: [titans, {name: attention, window: null}], model.layers: [1, 2]}, base: {seed: 3}}",
        "{space: {model: {mixer: {gate: [context, none], k: {low: 1, high: 4}}}}, sampler: grid, repeats: 3}",
        "{space: {train.lr: [0.1]}, objective: [valid.loss, state_floats], when: {train.lr: {model.dim: [8, 16]}}}",
        "{space: {model.dim: [8, 16]}, objective: valid.loss, pruner: median, exclude: [{model.dim: 16}], question: x}",
    ],
)
def test_what_a_space_may_say_validates(spaces: Draft7Validator, text: str, tmp_path: Path) -> None:
    assert [error.message for error in spaces.iter_errors(parse_value(text))] == []
    (tmp_path / "s.yaml").write_text(text)
    load_space(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "{base: {}}",
        "{space: {}}",
        "{space: {model.dim: 8}}",
        "{space: {model.dimm: [8]}}",
        "{space: {model.mixer.gate: {low: context, high: none}}}",
        "{space: {train.lr: {low: 0.1}}}",
        "{space: {train.lr: {low: 0.1, hihg: 1}}}",
        "{space: {train.lr: {low: fast, high: 1}}}",
        "{space: {model.dim: {low: 8, high: 16, step: 0}}}",
        "{space: {task.pairs: [4]}}",
        "{space: {eval: {test: [4]}}}",
        "{space: {seed: [0, 1]}}",
        "{space: {train.lr: [0.1]}, objective: test.accuracy}",
        "{space: {train.lr: [0.1]}, objective: [state_floats, valid.loss]}",
        "{space: {train.lr: [0.1]}, sampler: tpee}",
        "{space: {train.lr: [0.1]}, repeats: 0}",
        "{space: {train.lr: [0.1]}, seeds: 0..4}",
    ],
)
def test_a_typo_in_a_space_does_not(spaces: Draft7Validator, text: str, tmp_path: Path) -> None:
    assert list(spaces.iter_errors(parse_value(text)))
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ConfigError):
        load_space(tmp_path / "s.yaml")

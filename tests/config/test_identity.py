"""Ids that outlive changed defaults, new keys and changed formulas: `config/baselines.py` and `config/versions.py`."""

from dataclasses import replace

import pytest

from mclab.config import ids
from mclab.config.baselines import BASELINES, completed
from mclab.config.ids import canonical, id_as_of, run_id, science
from mclab.config.keys import sections
from mclab.config.model import RULES
from mclab.config.model.mixers import layer_mixer, name_of
from mclab.config.parse import parse_run
from mclab.config.strict import leaves
from mclab.config.versions import VERSIONS, differing, parts, versions
from mclab.plan.dotted import nested

NIAH = {"task": {"name": "niah"}}
TITANS = {"model": {"mixer": {"memory": "titans", "aggregate": "ssc"}}}
PATTERN = {"model": {"pattern": ["titans", "mixer"]}}
CASES = {"defaults": {}, "niah": NIAH, "titans": TITANS, "pattern": PATTERN}


@pytest.fixture
def then(monkeypatch):
    """Baselines as they would be if a default had been another one when ids were first made."""

    def change(of, key, value):
        monkeypatch.setitem(BASELINES, of, {**BASELINES[of], key: value})
        for cached in (ids._layout, layer_mixer, name_of):
            cached.cache_clear()

    yield change
    monkeypatch.undo()
    for cached in (ids._layout, layer_mixer, name_of):
        cached.cache_clear()


def test_every_key_has_a_baseline():
    """And no baseline is without a key: a removed key leaves records that no config can hold."""
    groups = {"": "run", "train": "train", "eval": "eval", "model": "model"}
    for path, owners in sections().items():
        for of, model in owners.items():
            inner = {key for key in model.model_fields if f"{path}.{key}".lstrip(".") in sections()}
            row = "module task" if (path, of) == ("task", "module") else of or groups[path]
            assert set(BASELINES[row]) == set(model.model_fields) - inner, (path, of)


@pytest.mark.parametrize("case", CASES)
def test_a_default_may_change_and_no_id_does(case, then):
    run = parse_run(CASES[case])
    before, stored = run_id(run), dict(leaves(canonical(run)))
    then("memory", "max_lr", 0.5)
    then("train", "batch", 32)
    then("niah", "vocab", 80)
    assert science(run)["train.batch"] == 64
    assert run_id(run) != before
    moved = parse_run(nested({**stored, "train.batch": 32}))
    assert "train.batch" not in science(moved)


def test_a_key_that_did_not_exist_means_what_the_code_then_did(then):
    run = parse_run(TITANS)
    stored = {path: value for path, value in leaves(canonical(run)) if path != "model.mixer.renormalise"}
    then("memory", "renormalise", False)  # as if the key had come later, with another default than the old behaviour
    found = parse_run(nested(completed(stored)))
    assert found.model.mixer.renormalise is False
    assert "model.mixer.renormalise" not in science(found)
    assert science(run)["model.mixer.renormalise"] is True


def test_a_word_of_a_pattern_names_what_it_has_come_to_mean(then):
    run = parse_run(PATTERN)
    before = run_id(run)
    then("memory", "max_lr", 0.5)
    assert science(run)["model.pattern.titans.max_lr"] == 1.0
    assert run_id(run) != before
    assert id_as_of(run, {}, {}) == before
    assert id_as_of(run, {}, {"titans.max_lr": 1.0}) == run_id(run)


def test_a_formula_has_a_version_that_only_its_users_carry(monkeypatch):
    runs = {case: parse_run(data) for case, data in CASES.items()}
    for part in list(VERSIONS):
        monkeypatch.delitem(VERSIONS, part)
    before = {case: run_id(run) for case, run in runs.items()}
    monkeypatch.setitem(VERSIONS, "task.niah", 2)
    monkeypatch.setitem(VERSIONS, "aggregate.ssc", 3)
    monkeypatch.setitem(RULES, "titans", replace(RULES["titans"], version=2))
    after = {case: run_id(run) for case, run in runs.items()}
    assert [case for case in CASES if after[case] == before[case]] == ["defaults"]
    assert versions(runs["titans"]) == {"aggregate.ssc": 3, "memory.titans": 2}
    assert versions(runs["pattern"]) == {"memory.titans": 2}
    assert {case: id_as_of(run, {}, {}) for case, run in runs.items()} == before
    assert differing({"memory.titans": 2}, versions(runs["titans"])) == "version 1 of aggregate.ssc, which is 3"


@pytest.mark.parametrize(
    ("model", "there", "not_there"),
    [
        ({"mixer": {"aggregate": "none"}}, ["memory.linear"], ["aggregate.none", "gate.context", "init.restart"]),
        ({"mixer": {"aggregate": "residual"}}, ["aggregate.residual", "init.restart"], ["gate.context", "pool.mean"]),
        ({"mixer": {"gate": "input"}}, ["gate.input"], ["pool.mean", "pool_of.keys", "connector.own"]),
        ({"mixer": {"pool_of": "inputs"}}, ["pool_of.inputs", "pool.mean"], ["pool_of.keys"]),
        ({"mixer": {"gate_activation": "sigmoid"}}, ["gate_activation.sigmoid"], ["gate_activation.softmax"]),
        ({"mixer": {"gate": "none", "aggregate": "ssc"}}, ["gate.none"], ["gate_activation.softmax"]),
        ({"mixer": {"gate": "none", "aggregate": "ssc"}}, ["gate.none", "pool.mean", "connector.own"], []),
        ({"mixer": {"aggregate": "ssc", "route": "annealed"}}, ["route.annealed"], ["route.hard"]),
        ({"mixer": {"aggregate": "grm"}}, ["aggregate.grm"], ["route.hard", "route.annealed"]),
        ({"mixer": {"memory": "titans", "depth": 1}}, ["memory.titans"], ["memory.deep", "memory_norm.rms"]),
        ({"mixer": {"memory": "titans", "memory_norm": "residual"}}, ["memory_norm.residual"], ["memory_norm.rms"]),
        ({"mixer": {"memory": "titans"}}, ["memory.deep"], ["hybrid.none"]),
        ({"mixer": {"hybrid": "mal"}}, ["hybrid.mal"], []),
        ({"mixer": {"name": "log_linear"}}, ["mixer.log_linear", "memory.mamba2"], ["mixer.memory"]),
        ({"pattern": ["conv", "attention/4"]}, ["mixer.conv", "mixer.attention"], ["mixer.memory"]),
    ],
)
def test_the_parts_of_a_run_are_what_its_result_depends_on(model, there, not_there):
    found = parts(parse_run({"model": model}))
    assert {"train", "model", "task.mqar", *there} <= found
    assert not found & set(not_there)


def test_a_cache_after_training_has_parts_of_its_own():
    found = {
        mix: parts(
            parse_run({"model": {"mixer": {"aggregate": "none"}}, "eval": {"post_training": 1, "post_mix": mix}})
        )
        for mix in ("outputs", "memories")
    }
    assert found["memories"] - found["outputs"] == {"eval.post_mix.memories"}
    assert "eval.post_training" in found["outputs"]


def test_versions_are_of_parts_that_exist():
    """A misspelt part would change no id."""
    from typing import get_args

    from mclab.config.model import MIXERS, Aggregate, Connector, Gate, Hybrid, Init, Pool
    from mclab.config.model.cache import GateActivation, MemoryNorm, PoolOf, Route, Segmentation
    from mclab.config.run import PostMix
    from mclab.config.task import TASKS

    axes = {"aggregate": Aggregate, "connector": Connector, "gate": Gate, "hybrid": Hybrid, "init": Init, "pool": Pool}
    axes |= {
        "segmentation": Segmentation,
        "route": Route,
        "memory_norm": MemoryNorm,
        "gate_activation": GateActivation,
        "pool_of": PoolOf,
    }
    known = {f"{axis}.{word}" for axis, words in axes.items() for word in get_args(words)}
    known |= {f"task.{word}" for word in TASKS} | {f"mixer.{word}" for word in MIXERS}
    known |= {f"eval.post_mix.{word}" for word in get_args(PostMix)}
    assert VERSIONS.keys() <= known | {"train", "model", "eval.post_training", "memory.deep", "chunk.above_length"}

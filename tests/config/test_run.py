"""Run ids, canonical configs, inert keys."""

from itertools import product
from typing import Any, get_args

import pytest

from mclab.config.ids import PACKABLE, canonical, inert, run_id, science, shape_key
from mclab.config.model import Aggregate, Gate
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, leaves
from mclab.config.warnings import warnings_of


def memory(**keys: Any) -> RunConfig:
    return parse_run({"model": {"mixer": keys}})


OWN = {"memory_args", "gate_args", "aggregate_args", "versions"}


def inert_words(run: RunConfig) -> set[str]:
    """Those of a part of one's own aside, which are dead in every run without one."""
    found = {path.removeprefix("model.mixer.") for path in inert(run) if path.startswith("model.mixer.")}
    assert (found >= OWN) == (run.model.mixer.name == "memory")
    return found - OWN


def test_ids_stay_what_they_are():
    """Golden: a new key, a refactor or another version of Python may not orphan a record."""
    assert run_id(RunConfig()) == "d7354366dccfa1cd"
    run = parse_run(
        {
            "seed": 3,
            "task": {"length": 128, "pairs": [16, 4]},
            "model": {"dim": 64, "mixer": {"aggregate": "ssc", "k": 4, "scale": 2.0, "route": "hard"}},
            "train": {"lr": 3e-3, "precision": "bf16"},
        }
    )
    assert run_id(run) == "fe1fc3e3e3547b37"
    assert run_id(parse_run({"model": {"mixer": {"name": "attention", "window": 16}}})) == "ffc228f223a3860f"


def test_science_holds_what_differs_from_the_defaults_and_the_names():
    run = parse_run({"train": {"lr": 1}, "model": {"mixer": {"gate": "input", "connector": "shared"}}})
    assert science(run) == {
        "model.mixer.gate": "input",
        "model.mixer.name": "memory",
        "task.name": "mqar",
        "train.lr": 1.0,
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"train": {"lr": 1e-3}}, {"train": {"lr": 0.001}}),
        ({"train": {"lr": 1}}, {"train": {"lr": 1.0}}),
        ({"task": {"pairs": [8, 4]}}, {"task": {"pairs": (4, 8)}}),
        ({"task": {"pairs": 4}}, {"task": {"pairs": [4]}}),
        ({"model": {"mixer": {"name": "memory"}}}, {"model": {"mixer": {}}}),
        ({"model": {"dim": 32}}, {}),
        ({"model": {"mixer": {"k": 5}}}, {}),
        ({"model": {"mixer": {"gate": "none"}}}, {"model": {"mixer": {"aggregate": "residual"}}}),
        ({"model": {"mixer": {"memory": "titans", "chunk": 8}}}, {"model": {"mixer": {"memory": "titans"}}}),
        (
            {"model": {"mixer": {"memory": "dla", "chunk": 99, "segment": 32}}},
            {"model": {"mixer": {"memory": "dla", "chunk": 32, "segment": 32}}},
        ),
        (
            {"model": {"position": "rotary", "mixer": {"memory": "retnet"}}},
            {"model": {"mixer": {"memory": "retnet"}}},
        ),
        ({"eval": {"post_segment": 8}}, {}),
        ({"eval": {"post_mix": "memories"}}, {}),
        ({"model": {"mixer": {"segment_lengths": [4, 8]}}}, {}),
        (
            {"model": {"mixer": {"segmentation": "listed", "segment_lengths": [4, 8, 8, 8]}}},
            {"model": {"mixer": {"segmentation": "listed", "segment_lengths": [4, 8], "segment": 5}}},
        ),
        (
            {"model": {"mixer": {"segmentation": "listed", "segment_lengths": [4, 4]}}},
            {"model": {"mixer": {"segment": 4}}},
        ),
        (
            {"model": {"mixer": {"memory": "dla", "chunk": 99, "segmentation": "listed", "segment_lengths": [4, 32]}}},
            {"model": {"mixer": {"memory": "dla", "chunk": 32, "segmentation": "listed", "segment_lengths": [4, 32]}}},
        ),
        (
            {"model": {"mixer": {"aggregate": "none"}}, "eval": {"post_training": 2, "post_segment": 64}},
            {"model": {"mixer": {"aggregate": "none"}}, "eval": {"post_training": 2}},
        ),
    ],
)
def test_one_science_one_id(one: dict[str, Any], other: dict[str, Any]):
    assert run_id(parse_run(one)) == run_id(parse_run(other))
    assert canonical(parse_run(one)) == canonical(parse_run(other))


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"train": {"lr": 0.0100000001}},
        {"task": {"pairs": [4, 8]}},
        {"eval": {"test": 512}},
        {"model": {"mixer": {"segment": 16}}},
        {"model": {"mixer": {"name": "attention"}}},
        {"model": {"mixer": {"memory": "titans"}}},
        {"model": {"mixer": {"segmentation": "log"}}},
        {"model": {"mixer": {"segmentation": "listed", "segment_lengths": [8, 16]}}},
    ],
)
def test_other_science_other_id(change: dict[str, Any]):
    assert run_id(parse_run(change)) != run_id(RunConfig())


def test_other_memory_other_id():
    """Chunks below the segment, and a cache after training, change what comes out."""
    titans, plain = memory(memory="titans", segment=16), memory(aggregate="none")
    norms = ({"memory_norm": "none"}, {"memory_norm": "residual"})
    for keys in ({"chunk": 4}, {"depth": 3}, {"max_lr": 0.5}, {"decay_to": "zero"}, *norms):
        assert run_id(memory(memory="titans", segment=16, **keys)) != run_id(titans), keys
    caches = ({"post_training": 1}, {"post_training": 2, "post_segment": 32})
    for keys in (*caches, {"post_training": 1, "post_mix": "memories"}):
        cached = parse_run({"model": {"mixer": {"aggregate": "none"}}, "eval": keys})
        assert run_id(cached) != run_id(plain)
        assert shape_key(cached) != shape_key(plain)
    turned = {"position": "rotary", "pattern": ["attention", "mixer"], "mixer": {"memory": "retnet"}}
    assert run_id(parse_run({"model": turned})) != run_id(parse_run({"model": turned | {"position": "none"}}))


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (
            {},
            "eval.post_training: is for a model trained without a cache, and aggregate is grm; "
            "take model.mixer.aggregate none",
        ),
        (
            {"mixer": {"aggregate": "ssc"}, "pattern": ["mixer", "titans"]},
            "eval.post_training: is for a model trained without a cache, and aggregate is ssc; "
            "take model.mixer.aggregate none",
        ),
        (
            {"mixer": {"name": "attention"}},
            "eval.post_training: keeps states of a memory, and mixer attention has none; "
            "leave it out or take model.mixer.name memory",
        ),
    ],
)
def test_a_cache_after_training_is_for_memories_trained_without(model: dict[str, Any], line: str):
    with pytest.raises(ConfigError) as caught:
        parse_run({"model": model, "eval": {"post_training": 1}})
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("keys", "dead"),
    [
        (
            {"aggregate": "none"},
            {"segment", "segmentation", "gate", "gate_activation", "init", "connector", "pool", "pool_of", "scale"}
            | {"k", "renormalise", "route"},
        ),
        (
            {"aggregate": "residual"},
            {"gate", "gate_activation", "connector", "pool", "pool_of", "scale", "k", "renormalise", "route"},
        ),
        (
            {"aggregate": "grm", "gate": "none"},
            {"gate_activation", "connector", "pool", "pool_of", "scale", "k", "renormalise", "route"},
        ),
        ({"aggregate": "grm", "gate": "input"}, {"connector", "pool", "pool_of", "scale", "k", "renormalise", "route"}),
        ({"aggregate": "grm", "gate": "context"}, {"k", "renormalise", "route"}),
        ({"aggregate": "soup", "gate": "context"}, {"k", "renormalise", "route"}),
        ({"aggregate": "ssc", "gate": "context"}, set()),
        ({"aggregate": "ssc", "gate": "input"}, set()),
        ({"aggregate": "ssc", "gate": "none"}, {"renormalise", "gate_activation"}),
        ({"aggregate": "ssc", "gate": "context", "gate_activation": "sigmoid"}, {"renormalise"}),
        ({"aggregate": "ssc", "gate": "input", "gate_activation": "identity"}, {"renormalise"}),
        (
            {"aggregate": "soup", "gate": "input", "gate_activation": "identity"},
            {"connector", "pool", "pool_of", "scale", "k", "renormalise", "route"},
        ),
        ({"aggregate": "ssc", "gate": "context", "route": "hard"}, set()),
        ({"aggregate": "ssc", "gate": "input", "route": "hard"}, {"connector", "pool", "scale"}),
        (
            {"aggregate": "ssc", "gate": "none", "route": "hard"},
            {"connector", "pool", "scale", "renormalise", "gate_activation"},
        ),
        ({"name": "attention"}, set()),
    ],
)
def test_inert_keys(keys: dict[str, Any], dead: set[str]):
    """Of a linear memory, which has no use for what a memory that descends a loss needs."""
    descent = {"depth", "chunk", "max_lr", "decay_to", "memory_norm", "window"}
    assert inert_words(memory(**keys)) == dead | (set() if "name" in keys else descent | {"segment_lengths"})


@pytest.mark.parametrize(
    ("keys", "dead"),
    [
        ({"memory": "swla"}, {"depth", "chunk", "max_lr", "decay_to", "memory_norm"}),
        ({"memory": "dla"}, {"decay_to"}),
        ({"memory": "dla", "depth": 1}, {"decay_to", "memory_norm"}),
        ({"memory": "titans", "depth": 3}, set()),
        ({"memory": "titans", "depth": 1}, {"decay_to", "memory_norm"}),
        # Buckets of different sizes: the sum of their keys and the mean may choose differently.
        ({"memory": "titans", "segmentation": "log", "gate": "input", "route": "hard"}, {"connector", "scale"}),
        (
            {
                "memory": "titans",
                "segmentation": "listed",
                "segment_lengths": [8, 16],
                "gate": "input",
                "route": "hard",
            },
            {"connector", "scale", "segment"},
        ),
        (
            {"memory": "titans", "segmentation": "log", "gate": "none", "route": "hard"},
            {"connector", "scale", "renormalise", "gate_activation"},
        ),
    ],
)
def test_inert_keys_of_a_memory(keys: dict[str, Any], dead: set[str]):
    """What forgetting leads to and what is normed means nothing where W^0 is zero and nothing is normed."""
    found = inert_words(memory(**{"aggregate": "ssc", "gate": "context", "hybrid": "mal", **keys}))
    assert found == dead | (set() if "segment" in dead else {"segment_lengths"})


OTHER = {
    "gate_activation": "sigmoid",
    "connector": "shared",
    "pool": "sum",
    "pool_of": "inputs",
    "scale": 3.0,
    "k": 7,
    "renormalise": False,
    "route": "hard",
    "init": "checkpoint",
    "segment": 4,
}


AXES = list(product(get_args(Aggregate), get_args(Gate)))


@pytest.mark.parametrize(("aggregate", "gate"), AXES)
def test_an_inert_key_changes_no_id_and_a_live_one_does(aggregate: str, gate: str):
    plain = memory(aggregate=aggregate, gate=gate)
    dead = inert_words(canonical(plain))
    for key, value in OTHER.items():
        changed = memory(aggregate=aggregate, gate=gate, **{key: value})
        assert (run_id(changed) == run_id(plain)) == (key in dead), key
        assert (canonical(changed) == canonical(plain)) == (key in dead), key


@pytest.mark.parametrize(("aggregate", "gate"), AXES)
def test_canonical_holds_still_and_keeps_the_id(aggregate: str, gate: str):
    run = memory(aggregate=aggregate, gate=gate, **{**OTHER, "pool_of": "keys"})
    assert canonical(canonical(run)) == canonical(run)
    assert run_id(canonical(run)) == run_id(run)


def test_canonical_leaves_an_already_canonical_run_alone():
    run = canonical(RunConfig())
    assert canonical(run) is run


def test_runs_that_may_share_a_pack():
    run = RunConfig()
    same = [parse_run({"seed": 4}), parse_run({"train": {"lr": 1.0, "clip": 2.0, "weight_decay": 0.0, "stop_at": 0.9}})]
    assert {shape_key(other) for other in same} == {shape_key(run)}
    for change in ({"model": {"dim": 64}}, {"train": {"batch": 32}}, {"train": {"steps": 10}}):
        assert shape_key(parse_run(change)) != shape_key(run)
    assert set(PACKABLE) <= set(dict(leaves(run)))


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({}, None),
        ({"segment": 64}, "model.mixer.segment"),
        ({"segment": 100}, "model.mixer.segment"),
        ({"aggregate": "ssc", "k": 7}, "model.mixer.k"),
        ({"aggregate": "ssc", "k": 6}, None),
        ({"aggregate": "ssc", "k": 3, "segmentation": "log"}, "model.mixer.k"),
        ({"aggregate": "ssc", "k": 2, "segmentation": "log"}, None),
        ({"segment": 32, "segmentation": "log"}, "model.mixer.segmentation"),
        ({"segment": 31, "segmentation": "log"}, None),
        ({"segment": 64, "segmentation": "log"}, "model.mixer.segment"),
        ({"memory": "titans"}, None),
        ({"memory": "titans", "chunk": 8}, None),
        ({"memory": "titans", "chunk": 32}, "model.mixer.chunk"),
        ({"memory": "linear", "chunk": 32}, None),
        ({"memory": "titans", "chunk": 32, "aggregate": "none"}, None),
        ({"aggregate": "none", "segment": 64}, None),
        ({"window": 64}, None),
        ({"hybrid": "mal", "window": 63}, None),
        ({"hybrid": "mag", "window": 64}, "model.mixer.window"),
        ({"name": "attention"}, None),
        ({"name": "attention", "window": 63}, None),
        ({"name": "attention", "window": 64}, "model.mixer.window"),
        ({"name": "attention", "window": 100}, "model.mixer.window"),
    ],
)
def test_oddities(keys: dict[str, Any], word: str | None):
    found = warnings_of(memory(**keys))
    assert [line.partition(":")[0] for line in found] == ([word] if word else [])


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"post_training": 1}, "eval.post_training: a state is kept every 64 tokens and the longest test has 64: "),
        ({"post_training": 1, "task": {"length": 128}}, None),
        (
            {"post_training": 1, "post_segment": 200, "task": {"length": 128}},
            "eval.post_segment: a state is kept every 200 tokens and the longest test has 128: ",
        ),
        ({"post_training": 1, "post_segment": 63}, None),
        ({"post_segment": 200}, None),
    ],
)
def test_a_cache_after_training_that_is_never_filled(keys: dict[str, Any], line: str | None):
    found = warnings_of(parse_run({"model": {"mixer": {"aggregate": "none"}}, "eval": keys}))
    assert [text.startswith(line or "-") for text in found] == [True] * (line is not None)

"""Run ids, and the one way of writing a run."""

from typing import Any

import pytest

from mclab.config.ids import PACKABLE, canonical, run_id, science, shape_key
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import leaves


def memory(**keys: Any) -> RunConfig:
    return parse_run({"model": {"mixer": keys}})


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

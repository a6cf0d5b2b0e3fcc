"""Keys without effect, given the others: which they are, and that no id depends on them."""

from itertools import product
from typing import Any, get_args

import pytest

from mclab.config.ids import canonical, inert, run_id
from mclab.config.model import Aggregate, Gate
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig


def memory(**keys: Any) -> RunConfig:
    return parse_run({"model": {"mixer": keys}})


OWN = {"memory_args", "gate_args", "aggregate_args", "versions"}


def inert_words(run: RunConfig) -> set[str]:
    """Without the keys of parts of one's own, which have no effect in a run without one."""
    found = {path.removeprefix("model.mixer.") for path in inert(run) if path.startswith("model.mixer.")}
    assert (found >= OWN) == (run.model.mixer.name == "memory")
    return found - OWN


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
    """Of a linear memory, which does not use the keys of a memory that descends a loss."""
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
    """`decay_to` and `memory_norm` have no effect where W^0 is zero and nothing is normed."""
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
def test_canonical_of_canonical_is_the_same_and_keeps_the_id(aggregate: str, gate: str):
    run = memory(aggregate=aggregate, gate=gate, **{**OTHER, "pool_of": "keys"})
    assert canonical(canonical(run)) == canonical(run)
    assert run_id(canonical(run)) == run_id(run)

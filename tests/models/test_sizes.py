"""Parameters and state size (floats) as the config counts them, against real tensors."""

from dataclasses import replace

import pytest
import torch

from mclab.caching.recurrent import prefix
from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from tests.caching.test_memories import layer_and_inputs, sensible
from tests.covering import full, label, pairwise
from tests.models.cases import MEMORY_AXES, config
from tests.registries import words


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # taps 3 * 3 * 8 = 72 a layer, memory 8 * 8, pool 8; 20 tokens in segments of 8: two kept.
        ({"aggregate": "grm"}, (2 * (72 + 72), 2 * 2 * 72)),
        ({"aggregate": "grm", "gate": "input"}, (2 * (72 + 64), 2 * 2 * 64)),
        ({"aggregate": "residual"}, (2 * (72 + 64), 2 * 2 * 64)),
        ({"aggregate": "none"}, (2 * (72 + 64), 0)),
        ({"aggregate": "ssc", "gate": "none"}, (2 * (72 + 72), 2 * 2 * 72)),
        ({"aggregate": "ssc", "gate": "none", "route": "hard"}, (2 * (72 + 72), 2 * 2 * 72)),
        ({"aggregate": "grm", "heads": 2}, (2 * (72 + 2 * (16 + 4)), 2 * 2 * 2 * (16 + 4))),
    ],
)
def test_state_arithmetic_of_memories(case, expected):
    assert state_floats(config("memory", case)) == expected


def test_parameter_arithmetic_of_every_memory():
    """20 tokens in segments of 3: seven slots of an input gate, or four for buckets."""
    routes = [
        case | {"route": "hard"}
        for case in full(MEMORY_AXES | {"aggregate": ["ssc"], "memory_norm": ["rms"], "segmentation": ["listed"]})
    ]
    for case in [
        *full(MEMORY_AXES | {"memory_norm": ["rms", "residual"], "segmentation": ["constant", "log"]}),
        *routes,
    ]:
        run = config("memory", {**sensible(case), "segment": 3, "segment_lengths": [3, 6, 2], "layers": 1, "heads": 2})
        assert parameters(run) == sum(p[0].numel() for p in LM(run, 1).parameters()), label(case)


@pytest.mark.parametrize("case", pairwise(MEMORY_AXES | {"chunk": [1, 3], "init": words("init")}), ids=label)
def test_state_arithmetic_is_what_the_definition_needs(case):
    """20 tokens in segments of 6, in the middle of a chunk. A tensor of the state counts when later tokens feel it."""
    case = sensible(case) | {"segment": 6, "segment_lengths": (6, 2, 8), "heads": 2}
    run = config("memory", case | {"layers": 1, "conv": 0})
    layer, (x, q, k, v) = layer_and_inputs(length=20, replicas=1, **case)
    memory, q_GTK = layer.memory, layer._fold(q)
    tokens = memory.tokens(x, layer._fold(k), layer._fold(v))
    state = memory.begin(memory.initial(tokens))
    for t in range(4):
        state = memory.step(state, tokens.at(t))

    def later(state):
        reads = []
        for t in range(4, 8):
            state = memory.step(state, tokens.at(t))
            reads.append(memory.read(state, q_GTK[:, t]))
        return torch.stack(reads)

    def felt(name, i):
        moved = [value + 0.1 * (i == j) for j, value in enumerate(getattr(state, name))]
        return not torch.equal(later(replace(state, **{name: tuple(moved)})), later(state))

    names = ("weights", "momentum", "anchor", "window", "logits")
    online = sum(value.numel() for name in names for i, value in enumerate(getattr(state, name)) if felt(name, i))
    past = prefix(3, case["segmentation"]) if case["aggregate"] != "none" else []
    pool = x.shape[-1] if layer.gate.needs_scores or case["aggregate"] == "ssc" else 0
    kept = len(past) * (sum(value.numel() for value in state.weights) + pool)
    assert state_floats(run) == (online + pool, kept)


def test_state_arithmetic_of_a_cache_after_training():
    """The longest sequence that is counted is the training length: 20 tokens, a state every 6, the last two."""
    run = config("memory", {"aggregate": "none"})
    changed = {**run.model_dump(), "eval": {"post_training": 2, "post_segment": 6}}
    assert state_floats(RunConfig.model_validate(changed)) == (2 * (72 + 64), 2 * 2 * 64)
    changed["eval"] = {"post_training": 9, "post_segment": 7}
    assert state_floats(RunConfig.model_validate(changed)) == (2 * (72 + 64), 2 * 2 * 64)
    changed["eval"] = {"post_training": 2}
    assert state_floats(RunConfig.model_validate(changed)) == state_floats(run)


def test_state_arithmetic_of_attention():
    assert state_floats(config("attention", {"conv": 0})) == (0, 2 * 2 * 20 * 8)
    assert state_floats(config("attention", {"conv": 0, "window": 3})) == (2 * 2 * 3 * 8, 0)


def test_state_arithmetic_of_patterns():
    """A layer's own: two taps of a convolution, keys and values of a window, a memory with taps, pool and cache."""
    pattern = {"layers": 4, "pattern": ["conv/3", "attention/3", "mixer", "attention"], "conv": 0}
    assert state_floats(config("memory", pattern)) == (2 * 8 + 2 * 3 * 8 + 72, 2 * 72 + 2 * 20 * 8)
    assert state_floats(config("conv", {"kernel": 5, "conv": 4})) == (2 * 4 * 8, 0)

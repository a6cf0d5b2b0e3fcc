"""The language model: arithmetic against real tensors, causality, replicas that never meet, gradients everywhere."""

from dataclasses import replace
from typing import Any, get_args

import pytest
import torch

from mclab.caching.aggregate import AGGREGATES
from mclab.caching.connector import CONNECTORS
from mclab.caching.gate import GATES
from mclab.caching.init import INITS
from mclab.caching.pool import POOLS
from mclab.caching.recurrent import prefix
from mclab.caching.segment import SEGMENTS
from mclab.config import model as config_model
from mclab.config.model import MemoryMixer
from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.config.task import TASKS as TASK_CONFIGS
from mclab.models.hybrid import HYBRIDS
from mclab.models.lm import LM
from mclab.models.mixers import MIXERS
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from tests.caching.test_memories import layer_and_inputs, sensible
from tests.covering import full, label, pairwise
from tests.layers import comparable
from tests.registries import words


def mixer_axes() -> dict[str, list[Any]]:
    return {
        "aggregate": words("aggregate"),
        "gate": words("gate"),
        "connector": words("connector"),
        "init": words("init"),
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "gate_activation": words("gate_activation"),
        "route": words("route"),
        "out_gate": [False, True],
        "qk_norm": [True, False],
        "segment": [3, 8],
        "position": ["none", "rotary", "learned"],
        "conv": [0, 4],
        "mlp": [0, 2],
        "heads": [1, 2],
    }


MIXER_AXES = mixer_axes()
MODEL_KEYS = ("position", "conv", "mlp", "heads", "pattern", "layers")
AROUND = {key: MIXER_AXES[key] for key in ("position", "conv", "mlp", "heads")}
HYBRID_AXES = {
    "hybrid": words("hybrid"),
    "window": [1, 3, 40],
    "memory": words("memory"),
    "aggregate": words("aggregate", but=["residual"]),
    "gate": words("gate", but=["none"]),
    "out_gate": [False, True],
    **AROUND,
}
ATTENTION_AXES = {"window": [None, 3], "rotary": [None, True, False], "taps": [None, 0, 3], **AROUND}
CONV_AXES = {"kernel": [1, 3], **AROUND}
PATTERNS = [
    ["conv/3", "mixer"],
    ["attention/3", "mixer", "conv/2"],
    ["mixer", "attention"],
    ["transformer++/3", "mixer"],
]
PATTERN_AXES = {"pattern": PATTERNS, "layers": [3], **AROUND}


def memory_axes() -> dict[str, list[Any]]:
    return {
        "memory": words("memory"),
        "depth": [1, 2, 3],
        "aggregate": words("aggregate"),
        "gate": words("gate"),
        "segmentation": words("segmentation"),
        "memory_norm": words("memory_norm"),
    }


MEMORY_AXES = memory_axes()
OWN = {"module": "torch.nn.Linear", "args": {"out_features": 8}}


def config(name, case):
    model = {key: value for key, value in case.items() if key in MODEL_KEYS}
    mixer = {key.replace("taps", "conv"): value for key, value in case.items() if key not in MODEL_KEYS}
    task = {"vocab": 32, "length": 20, "pairs": [2, 4]}
    return RunConfig.model_validate({"task": task, "model": {"dim": 8, **model, "mixer": {"name": name, **mixer}}})


CASES = [
    *(pytest.param(config("memory", comparable(c)), id="memory-" + label(c)) for c in pairwise(MIXER_AXES)),
    *(pytest.param(config("attention", c), id="attention-" + label(c)) for c in pairwise(ATTENTION_AXES)),
    *(pytest.param(config("conv", c), id="conv-" + label(c)) for c in pairwise(CONV_AXES)),
    *(pytest.param(config("memory", c), id="hybrid-" + label(c)) for c in pairwise(HYBRID_AXES)),
    *(pytest.param(config("memory", c), id="pattern-" + label(c)) for c in pairwise(PATTERN_AXES)),
]
OWN_CASES = [
    pytest.param(config("module", OWN), id="module"),
    pytest.param(config("module", {**OWN, "pattern": PATTERNS[0]}), id="module-pattern"),
]


def built(run, replicas=2):
    model = LM(run, replicas)
    initialise(model, range(replicas))
    return model.double()


def batch(run, replicas=2, size=3):
    data = TASKS[run.task.name].batch(run.task, list(range(replicas)), "train", 0, size, "cpu")
    return data.tokens, data.positions


@pytest.mark.parametrize("run", CASES)
def test_parameter_arithmetic_and_finite_gradients_everywhere(run):
    model = built(run)
    assert parameters(run) == sum(p[0].numel() for p in model.parameters())
    logits = model(*batch(run))
    loss = torch.logsumexp(logits, -1).square().sum() + logits[..., 0].sum()
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for (name, _), grad in zip(model.named_parameters(), grads, strict=True):
        assert torch.isfinite(grad).all(), name
        assert grad.abs().sum() > 0, f"{name} gets no gradient"


@pytest.mark.parametrize("run", [case for case in (*CASES, *OWN_CASES) if case.values[0].model.position != "learned"])
def test_twice_the_length_that_the_model_was_made_for(run):
    """Finite, and its first half is what the shorter sequence gives."""
    model, longer = built(run), run.task.model_copy(update={"length": 2 * run.task.length})
    tokens = TASKS[run.task.name].batch(longer, [0, 1], "train", 0, 3, "cpu").tokens
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    whole, half = model(tokens, everywhere), run.task.length
    assert torch.isfinite(whole).all()
    torch.testing.assert_close(
        whole[:, :, :half], model(tokens[:, :, :half], everywhere[:, :, :half]), atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("run", CASES)
def test_causal(run):
    """Changing the token at t changes no logit before t."""
    model, (tokens, _) = built(run), batch(run)
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    before = model(tokens, everywhere)
    for t in (0, 7, 8, 19):
        changed = tokens.clone()
        changed[:, :, t] = (changed[:, :, t] + 1) % run.task.vocab
        after = model(changed, everywhere)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=1e-9, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])


def test_head_at_scored_positions_equals_full_head():
    run = config("memory", {})
    model, (tokens, positions) = built(run), batch(run)
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    full = model(tokens, everywhere)
    picked = full.gather(2, positions[..., None].expand(-1, -1, -1, full.shape[-1]))
    torch.testing.assert_close(model(tokens, positions), picked, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "run",
    [
        config("memory", {}),
        config("memory", {"memory": "titans", "hybrid": "mal", "window": 3}),
        config("memory", {"memory": "titans", "hybrid": "mag", "window": 3}),
        config("attention", {"rotary": True, "taps": 0}),
        config("conv", {}),
        config("module", OWN),
    ],
)
def test_replicas_never_meet(run):
    """A replica's logits are those of a pack of its own; NaN in one replica stays there."""
    both, (tokens, positions) = built(run), batch(run)
    alone = LM(run, 1)
    initialise(alone, [1])
    expected = alone.double()(tokens[1:], positions[1:])
    torch.testing.assert_close(both(tokens, positions)[1:], expected, atol=1e-12, rtol=0)
    for values in both.parameters():
        values.data[0] = torch.nan
    torch.testing.assert_close(both(tokens, positions)[1:], expected, atol=1e-12, rtol=0)


def test_a_parameter_starts_from_its_own_name_alone():
    """Adding an output gate leaves every other parameter as it was."""
    plain, gated = built(config("memory", {})), built(config("memory", {"out_gate": True}))
    others = dict(gated.named_parameters())
    for name, values in plain.named_parameters():
        assert torch.equal(values, others.pop(name)), name
    assert all("out_gate" in name for name in others)


def test_seeds_start_differently_and_again_alike():
    run = config("memory", {})
    one, two = built(run), built(run)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.embedding[0], one.embedding[1])


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


@pytest.mark.parametrize(
    ("literal", "registry"),
    [
        (config_model.Aggregate, AGGREGATES),
        (config_model.Gate, GATES),
        (config_model.Connector, CONNECTORS),
        (config_model.Init, INITS),
        (config_model.Pool, POOLS),
        (config_model.Hybrid, ["none", *HYBRIDS]),
        (MemoryMixer.model_fields["segmentation"].annotation, SEGMENTS),
    ],
)
def test_config_names_what_the_registries_hold(literal, registry):
    assert set(literal.__args__) == set(registry)


def test_config_names_the_mixers_and_tasks_that_exist():
    assert set(config_model.MIXERS) == set(MIXERS)
    assert {name: model().name for name, model in config_model.MIXERS.items()} == {name: name for name in MIXERS}
    assert set(get_args(get_args(config_model.Mixer)[0])) == set(config_model.MIXERS.values())
    assert set(TASK_CONFIGS) == set(TASKS)

"""The models that the tests of this folder build: their axes, a run of each case, and a batch of its task."""

from typing import Any

import pytest

from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from tests.covering import label, pairwise
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

"""Every pair of choices trains: a few steps, finite, every parameter told by the loss, and nothing sees the future."""

from functools import cache
from typing import Any

import pytest
import torch

from mclab.config.ids import canonical
from mclab.config.options import Keep
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from mclab.train import train_pack
from mclab.train.tensor_file import read
from tests.caching.test_memories import sensible
from tests.covering import full, label, pairwise
from tests.registries import words
from tests.tolerances import FP64


def axes() -> dict[str, list[Any]]:
    return {
        "memory": words("memory"),
        "depth": [1, 2, 3],
        "aggregate": words("aggregate"),
        "gate": words("gate"),
        "gate_activation": words("gate_activation"),
        "connector": words("connector"),
        "init": words("init"),
        "segmentation": words("segmentation"),
        "pool": words("pool"),
        "pool_of": words("pool_of"),
        "route": words("route"),
    }


AXES = axes()
#: What the pairs vary beside; 16 is above the segment.
BESIDE = {
    "chunk": [3, 1, 16],
    "decay_to": words("decay_to"),
    "memory_norm": words("memory_norm"),
    "k": [1, 9],
}
#: 14 tokens in segments of 4, the last one short, of chunks of 3, the last one short.
TASK = {"vocab": 16, "length": 14, "pairs": [2]}
MIXER = {"segment": 4, "segment_lengths": [4, 2, 6], "chunk": 3, "k": 1}


def run_of(case):
    # A memory with a residual and no norm runs away where every token is a full step (docs/equations.md#staying-alive).
    bounded = {"max_lr": 0.25} if case.get("memory_norm") == "residual" else {}
    return RunConfig.model_validate({
        "task": TASK,
        "model": {"dim": 8, "layers": 1, "heads": 2, "mixer": MIXER | bounded | sensible(case)},
        "train": {"steps": 3, "batch": 4, "warmup": 0.0, "weight_decay": 0.0},
        "eval": {"every": 3, "valid": 4, "test": 4},
    })  # fmt: skip


def assert_trains(run, tmp_path):
    """Without weight decay a parameter moves by its gradient alone."""
    (outcome,) = train_pack([run], device="cpu", keep=Keep(weights=True))
    assert outcome.status == "done"
    assert all(torch.isfinite(torch.tensor([point["loss"], point["grad_norm"]])).all() for point in outcome.curve)
    file = tmp_path / "weights"
    file.write_bytes(outcome.weights)
    trained, _ = read(file)
    start = dict(untrained(run).named_parameters())
    assert trained.keys() == start.keys()
    for name, values in trained.items():
        assert torch.isfinite(values).all(), name
        assert not torch.equal(values, start[name][0].data), f"{name} does not learn"


def assert_causal(run):
    """The token at t changes no logit before t, and those at t."""
    model, T = untrained(run).double(), run.task.length
    tokens = TASKS["mqar"].batch(run.task, [0], "train", 0, 2, "cpu").tokens
    everywhere = torch.arange(T).expand(1, 2, T)
    with torch.no_grad():
        before = model(tokens, everywhere)
        for t in (0, 3, 4, 9, 13):
            changed = tokens.clone()
            changed[..., t] = (changed[..., t] + 1) % run.task.vocab
            after = model(changed, everywhere)
            torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=FP64, rtol=0)
            assert not torch.equal(after[:, :, t], before[:, :, t])


def untrained(run):
    model = LM(run, 1)
    initialise(model, [run.seed])
    return model


@pytest.mark.parametrize("case", pairwise(AXES | BESIDE), ids=label)
def test_a_pairwise_cover_trains_and_sees_no_future(case, tmp_path):
    run = run_of(case)
    assert_trains(run, tmp_path)
    assert_causal(run)


@cache
def different():
    """The product without what is the same science twice."""
    return list(
        dict.fromkeys(
            canonical(run_of(case))
            for case in full(
                AXES
                | {
                    "route": ["explore"],
                    "gate_activation": ["softmax"],
                    "pool_of": ["keys"],
                    "segmentation": ["constant", "log"],
                }
            )
        )
    )


@pytest.mark.product
def test_the_product_trains_and_sees_no_future(tmp_path):
    assert len(different()) > 500
    for run in different():
        assert_trains(run, tmp_path)
        assert_causal(run)
